import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"
import type * as PgClient from "@effect/sql-pg/PgClient"
import type * as Redacted from "effect/Redacted"
import { type Timestamp, toTimestamp } from "../../../../domain/Timestamp.ts"
import type { ConnectionConfig } from "../connection/DatabaseServer.ts"
import { connectTimeout } from "./SqlErrors.ts"

/** Milliseconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01. */
const postgresEpoch = 946_684_800_000

const decodeTimestamp = (bytes: Uint8Array, offset: number): Timestamp => {
  const micros = new DataView(bytes.buffer, bytes.byteOffset + offset, 8).getBigInt64(0)
  return toTimestamp(Number(micros / 1000n) + postgresEpoch)
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

/** The codec of `text`. The driver's own codec deletes a leading U+FEFF from a text that contains U+FFFD. */
const textCodec: PgTypes.Codec<string> = {
  encode: (value) => PgTypes.encode(value, PgTypes.OID.text),
  decode: (bytes) => Result.succeed(utf8.decode(bytes)),
  read: (bytes, offset, size) => Result.succeed(utf8.decode(bytes.subarray(offset, offset + size)))
}

/**
 * Returns the driver's column types with two changes: a `timestamptz` is decoded to the domain's `Timestamp`, and a
 * text keeps every U+FEFF.
 */
const makeColumnTypes = (): PgTypes.Registry => {
  const types = PgTypes.makeRegistry()
  types.register<Timestamp>(
    PgTypes.OID.timestamptz,
    {
      encode: (value) => PgTypes.encode(Date.parse(value), PgTypes.OID.timestamptz),
      decode: (bytes) => Result.succeed(decodeTimestamp(bytes, 0)),
      read: (bytes, offset) => Result.succeed(decodeTimestamp(bytes, offset))
    },
    { arrayOid: PgTypes.OID.timestamptzArray }
  )
  types.register(PgTypes.OID.text, textCodec, { arrayOid: PgTypes.OID.textArray })
  return types
}

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
