import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as EmbeddedPostgres from "../../../src/adapters/embedded/EmbeddedPostgres.ts"
import { Database } from "../../../src/adapters/postgres/Database.ts"
import * as KeyStore from "../../../src/adapters/postgres/KeyStore.ts"
import { migrate } from "../../../src/adapters/postgres/Migrations.ts"
import * as PromptRepo from "../../../src/adapters/postgres/PromptRepo.ts"
import * as WorkspaceStore from "../../../src/adapters/postgres/WorkspaceStore.ts"
import * as keys from "../../contracts/KeyStore.ts"
import * as prompts from "../../contracts/PromptRepo.ts"
import * as workspaces from "../../contracts/WorkspaceStore.ts"
import { embedded } from "../../support/database.ts"

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
