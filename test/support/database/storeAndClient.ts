import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { migrate } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import { workspaceStore } from "./workspaceStore.ts"
import { connect, connectClient, freshDatabase, toDatabaseUrl } from "../postgres.ts"

/** Creates a migrated database. Returns its store, and a separate SQL client that stands for another program. */
export const openStoreAndClient = Effect.gen(function* () {
  const name = yield* freshDatabase
  const database = Layer.provideMerge(Layer.effectDiscard(Effect.orDie(migrate)), connect(name))
  const context = yield* Layer.build(Layer.provideMerge(workspaceStore, database))
  const store = yield* Effect.provide(WorkspaceStore, context)
  return { store, other: yield* connectClient(toDatabaseUrl(name)) }
})
