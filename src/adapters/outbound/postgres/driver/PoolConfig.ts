import type * as PgClient from "@effect/sql-pg/PgClient"
import type * as Redacted from "effect/Redacted"
import { makeColumnTypes } from "./ColumnTypes.ts"
import type { ConnectionConfig } from "../connection/DatabaseServer.ts"
import { connectTimeout } from "./Timeouts.ts"

/** The PostgreSQL servers of a database. */
export interface DatabaseOptions {
  readonly url: Redacted.Redacted
}

/** How many statements share a connection. */
export const multiplexConcurrency = 8

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
  multiplex: true,
  multiplexConcurrency,
  maxMessageSize
})
