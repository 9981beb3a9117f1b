import * as Layer from "effect/Layer"
import * as PostgresWorkspaceStore from "../../../src/adapters/outbound/postgres/workspaces/PostgresWorkspaceStore.ts"
import { Actor } from "../../../src/application/administration/Actor.ts"

/** The workspace store of a database. The audit log names the actor `unknown`. */
export const workspaceStore = Layer.provide(PostgresWorkspaceStore.layer, Layer.succeed(Actor, "unknown"))
