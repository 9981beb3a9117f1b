import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as PostgresWorkspaceStore from "../../../src/adapters/outbound/postgres/administration/PostgresWorkspaceStore.ts"
import { Actor, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import { connect, connectClient, freshName, makeMigratedDatabase, toDatabaseUrl } from "./server.ts"

/** The workspace store of a database. The audit log names the actor `unknown`. */
export const workspaceStore = Layer.provide(PostgresWorkspaceStore.layer, Layer.succeed(Actor, "unknown"))

/** Creates a migrated database. Returns its store, and a separate SQL client that stands for another program. */
export const openStoreAndClient = Effect.gen(function* () {
  const name = yield* makeMigratedDatabase(freshName())
  const context = yield* Layer.build(Layer.provideMerge(workspaceStore, connect(name)))
  const store = yield* Effect.provide(WorkspaceStore, context)
  return { store, other: yield* connectClient(toDatabaseUrl(name)) }
})
