// This import compiles schemas to functions; see `ServiceLayers.ts`.
import "effect/schema/SchemaJITCompiler/enable"
import { hostname, userInfo } from "node:os"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as PostgresWorkspaceStore from "../../adapters/outbound/postgres/administration/PostgresWorkspaceStore.ts"
import { Database } from "../../adapters/outbound/postgres/Database.ts"
import * as PostgresPromptRepo from "../../adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import { migrate } from "../../adapters/outbound/postgres/schema/Migrations.ts"
import {
  assertSchemaCurrent,
  readSchemaStatus
} from "../../adapters/outbound/postgres/schema/SchemaVersion.ts"
import { Administration } from "../../application/Administration.ts"
import { Prompts } from "../../application/Prompts.ts"
import { Actor } from "../../application/ports/WorkspaceStore.ts"
import type { ServiceConfig } from "../config/Config.ts"
import { limitHeapGrowth } from "../GarbageCollection.ts"

// The composition root of the commands of operators. This module imports no module that only `serve` needs, so that
// these commands start faster. `serve --demo` uses `administrationLayer` and `makeActorLayer` for its workspace.

/** Returns the name of the user of this process. Returns the numeric id if the system has no name for the user. */
const readUserName = (): string =>
  Result.getOrElse(
    Result.try(() => userInfo().username),
    () => `uid ${process.getuid?.()}`
  )

/** The actor for the audit log: the given name, or by default the user and the host of this process. */
export const makeActorLayer = (name: string | undefined): Layer.Layer<Actor> =>
  Layer.sync(Actor, () => name ?? `${readUserName()}@${hostname()}`)

/** The use cases of operators, on a database. The audit log names the `Actor`. */
export const administrationLayer: Layer.Layer<Administration, never, Database | PgClient | Actor> =
  Administration.layer.pipe(Layer.provide([PostgresWorkspaceStore.layer, NodeCrypto.layerSecureRandom]))

/** A database: a PostgreSQL server, or the embedded database. Several processes can use the same embedded database. */
const databaseLayer = ({ databaseUrl, databaseMaxConnections, dataDir }: ServiceConfig) =>
  databaseUrl !== undefined
    ? Database.layer({ url: databaseUrl }, databaseMaxConnections)
    : Layer.unwrap(
        Effect.promise(() => import("../../adapters/outbound/postgres/embedded/EmbeddedPostgres.ts")).pipe(
          Effect.flatMap(({ connect }) => connect({ dataDir })),
          Effect.map((server) => Database.layer(server, databaseMaxConnections))
        )
      )

/** The use cases of a command: administration, and reads of prompts without caches. */
export const commandUseCasesLayer = (config: ServiceConfig, mustMigrate: boolean) =>
  Layer.merge(administrationLayer, Prompts.layer).pipe(
    Layer.provide(PostgresPromptRepo.layer),
    Layer.provide(makeActorLayer(config.actor)),
    Layer.provide(Layer.effectDiscard(mustMigrate ? migrate : assertSchemaCurrent)),
    Layer.provide(databaseLayer(config))
  )

/** The operations of the commands that need the database. */
export const makeOperations = (config: ServiceConfig) => {
  // An import or an export of many prompts creates much garbage.
  limitHeapGrowth()
  return {
    migrate: Effect.provide(migrate, databaseLayer(config)),
    schemaStatus: Effect.provide(readSchemaStatus, databaseLayer(config)),
    openUseCases: (mustMigrate: boolean) => Layer.build(commandUseCasesLayer(config, mustMigrate))
  }
}
