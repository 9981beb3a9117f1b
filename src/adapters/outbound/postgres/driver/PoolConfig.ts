import type * as PgClient from "@effect/sql-pg/PgClient"
import type * as Redacted from "effect/Redacted"
import { makeColumnTypes } from "./ColumnTypes.ts"
import type { ConnectionConfig } from "../connection/DatabaseServer.ts"
import { connectTimeout } from "./Timeouts.ts"

/** The PostgreSQL servers of a database. */
export interface DatabaseOptions {
  readonly url: Redacted.Redacted
}

/**
 * How many statements share a connection. A pool fills one connection before it opens another, so with a larger
 * number, statements would wait behind a slow statement. With 1, a query after a freeze of the server can wait in
 * vain: the pool counts a failed connection as a connection that is opening.
 */
export const multiplexConcurrency = 2

/** Maximum size of a message in bytes. The largest row has a prompt's content, its fragments and their overrides. */
const maxMessageSize = 16 * 1024 * 1024

/**
 * Returns the configuration that all pools of a database share. The pools have no minimum number of connections, so a
 * pool can be built while PostgreSQL is down. PgBouncer rejects startup parameters other than these, so
 * `SessionSetup.ts` sets up open connections. Statements are not prepared by default: a pooler may run each
 * transaction in another session.
 */
export const makePoolConfig = (connectionConfig: ConnectionConfig): PgClient.PgPoolConfig => ({
  ...connectionConfig,
  connectTimeout,
  startupParameters: { application_name: "prompt-retrieval", TimeZone: "UTC" },
  types: makeColumnTypes(),
  // Lets the driver interrupt a statement without waiting for the server.
  multiplex: true,
  multiplexConcurrency,
  maxMessageSize
})
