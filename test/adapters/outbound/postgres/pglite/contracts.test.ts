import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import * as PostgresKeyStore from "../../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import { migrate } from "../../../../../src/adapters/outbound/postgres/Migrations.ts"
import * as PostgresPromptRepo from "../../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresPromptTitles from "../../../../../src/adapters/outbound/postgres/PostgresPromptTitles.ts"
import * as PostgresWorkspaceStore from "../../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { testFileImport } from "../../../../contracts/FileImport.ts"
import { testKeyStore } from "../../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../../contracts/PromptRepo.ts"
import { testPromptTitles } from "../../../../contracts/PromptTitles.ts"
import { testWorkspaceStore } from "../../../../contracts/WorkspaceStore/contract.ts"
import { embedded } from "../../../../support/database.ts"

/** A fresh embedded database. */
const database = Layer.unwrap(
  Effect.gen(function* () {
    const { DATA_DIR } = yield* embedded.acquire
    const { socketPath } = yield* Effect.orDie(EmbeddedPostgres.open({ dataDir: DATA_DIR! }))
    return Layer.provideMerge(Layer.effectDiscard(Effect.orDie(migrate)), Database.layer({ socketPath }))
  })
)

const ports = Layer.mergeAll(
  PostgresPromptRepo.layer,
  PostgresPromptTitles.layer,
  PostgresKeyStore.layer,
  PostgresWorkspaceStore.layer
).pipe(Layer.provide(database))

testKeyStore("the embedded database", Layer.fresh(ports))
testPromptRepo("the embedded database", Layer.fresh(ports))
testPromptTitles("the embedded database", Layer.fresh(ports))
testWorkspaceStore("the embedded database", Layer.fresh(ports))
testFileImport("the embedded database", Layer.fresh(ports))
