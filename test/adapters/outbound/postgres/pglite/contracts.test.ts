import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import * as KeyStore from "../../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import { migrate } from "../../../../../src/adapters/outbound/postgres/Migrations.ts"
import * as PromptRepo from "../../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as WorkspaceStore from "../../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import * as keys from "../../../../contracts/KeyStore.ts"
import * as prompts from "../../../../contracts/PromptRepo.ts"
import * as workspaces from "../../../../contracts/WorkspaceStore.ts"
import { embedded } from "../../../../support/database.ts"

/** A fresh embedded database. */
const database = Layer.unwrap(
  Effect.gen(function* () {
    const { DATA_DIR } = yield* embedded.acquire
    const { socketPath } = yield* Effect.orDie(EmbeddedPostgres.open({ dataDir: DATA_DIR! }))
    return Layer.provideMerge(Layer.effectDiscard(Effect.orDie(migrate)), Database.layer({ socketPath }))
  })
)

const ports = Layer.mergeAll(PromptRepo.layer, KeyStore.layer, WorkspaceStore.layer).pipe(
  Layer.provide(database)
)

keys.contract("the embedded database", Layer.fresh(ports))
prompts.contract("the embedded database", Layer.fresh(ports))
workspaces.contract("the embedded database", Layer.fresh(ports))
