import type * as PgClient from "@effect/sql-pg/PgClient"
import type * as Redacted from "effect/Redacted"
import { makeColumnTypes } from "./ColumnTypes.ts"
import type { ConnectionConfig } from "../connection/DatabaseServer.ts"
import { connectTimeout } from "./Timeouts.ts"

export interface DatabaseOptions {
  readonly url: Redacted.Redacted
}

/**
 * Maximum size of a message from PostgreSQL, in bytes. The largest row has a prompt's content, its fragments and their
 * overrides.
 */
const maxMessageSize = 16 * 1024 * 1024

/**
 * Returns the configuration that all pools of a database share. The pools have no minimum number of connections, so a
 * pool can be built while PostgreSQL is down. PgBouncer accepts only a few startup parameters, so `SessionSetup.ts`
 * makes the other settings after a connection is open.
 */
export const makePoolConfig = (connectionConfig: ConnectionConfig): PgClient.PgPoolConfig => ({
  ...connectionConfig,
  connectTimeout,
  startupParameters: { application_name: "prompt-retrieval", TimeZone: "UTC" },
  types: makeColumnTypes(),
  // With `multiplex`, the driver does not wait for the server when the caller of a statement is interrupted. PostgreSQL
  // still completes the statement. A connection runs only one query at a time, because a second query would wait behind
  // a slow one even if other connections are idle.
  multiplex: true,
  multiplexConcurrency: 1,
  maxMessageSize
})
