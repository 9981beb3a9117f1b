import { randomBytes } from "node:crypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { makeDatabaseServer } from "../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { Database } from "../../../src/adapters/outbound/postgres/Database.ts"

/** Returns the URL of a database on the server of the tests (`setup/startServer.ts`), for another role if `role` is given. */
export const toDatabaseUrl = (database: string, role?: string): string => {
  const url = new URL(process.env.TEST_DATABASE_URL!)
  url.pathname = `/${database}`
  if (role !== undefined) url.username = role
  return url.href
}

/** Returns a random name for a database or a role. */
export const freshName = (): string => `pr_${randomBytes(8).toString("hex")}`

/** Connects directly to the database of a URL. Statements have no timeout. Closing the scope closes the connections. */
export const connectClient = (url: string): Effect.Effect<PgClient.PgClient, never, Scope.Scope> =>
  Layer.build(Layer.fresh(PgClient.layer(makeDatabaseServer(Redacted.make(url)).config))).pipe(
    Effect.map(Context.get(PgClient.PgClient)),
    Effect.orDie
  )

/** Runs one statement in the server's default database. */
export const onServer = (statement: string): Effect.Effect<void> =>
  Effect.flatMap(connectClient(process.env.TEST_DATABASE_URL!), (sql) => sql.unsafe(statement)).pipe(
    Effect.scoped,
    Effect.asVoid,
    Effect.orDie
  )

const makeDatabase = (name: string, template: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(Effect.as(onServer(`create database ${name} template ${template}`), name), () =>
    onServer(`drop database ${name} with (force)`)
  )

/** Creates an empty database and returns its name. Closing the scope drops the database. */
export const freshDatabase: Effect.Effect<string, never, Scope.Scope> = Effect.suspend(() =>
  makeDatabase(freshName(), "template0")
)

/** Creates a database with every table and no rows, and returns its name. Closing the scope drops the database. */
export const makeMigratedDatabase = (name: string): Effect.Effect<string, never, Scope.Scope> =>
  makeDatabase(name, process.env.TEST_TEMPLATE_DATABASE!)

/** Returns the layer of `Database` for a database, for another role if `role` is given. */
export const connect = (database: string, role?: string) =>
  Database.layer({ url: Redacted.make(toDatabaseUrl(database, role)) })

/** The layer of `Database` over a new database without tables. */
export const emptyDatabase = Layer.unwrap(Effect.map(freshDatabase, (name) => connect(name)))

/** The layer of `Database` over a new database with every table and no rows. */
export const migratedDatabase = Layer.unwrap(
  Effect.map(
    Effect.suspend(() => makeMigratedDatabase(freshName())),
    (name) => connect(name)
  )
)

/**
 * Creates a role without privileges and returns its name. Acquire the role before the databases in which it gets
 * privileges, because a role with privileges cannot be dropped.
 */
export const freshRole = Effect.acquireRelease(
  Effect.tap(Effect.sync(freshName), (role) => onServer(`create role ${role} login`)),
  (role) => onServer(`drop role ${role}`)
)
