import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"
import { parseJson } from "../../domain/Json.ts"
import { type Timestamp, timestampOf } from "../../domain/Timestamp.ts"

/** Milliseconds from the Unix epoch to PostgreSQL's, 2000-01-01. */
const postgresEpoch = 946_684_800_000

const decode = (bytes: Uint8Array, offset: number): Timestamp => {
  const micros = new DataView(bytes.buffer, bytes.byteOffset + offset, 8).getBigInt64(0)
  return timestampOf(Number(micros / 1000n) + postgresEpoch)
}

const utf8 = new TextDecoder()

/** Decodes `json` and `jsonb` with exact numbers; `jsonb` begins with a byte for its version. */
const exactJson = (oid: number, start: number): PgTypes.Codec<unknown> => ({
  encode: (value) => PgTypes.encode(value, oid),
  decode: (bytes) => Result.succeed(parseJson(utf8.decode(bytes.subarray(start)))),
  read: (bytes, offset, size) =>
    Result.succeed(parseJson(utf8.decode(bytes.subarray(offset + start, offset + size))))
})

/**
 * The driver's types, except that a `timestamptz` is the domain's `Timestamp` and that JSON keeps exact numbers. So a
 * row is the resource, without a mapping between them.
 */
export const makeTypes = (): PgTypes.Registry => {
  const types = PgTypes.makeRegistry()
  types.register<Timestamp>(
    PgTypes.OID.timestamptz,
    {
      encode: (value) => PgTypes.encode(Date.parse(value), PgTypes.OID.timestamptz),
      decode: (bytes) => Result.succeed(decode(bytes, 0)),
      read: (bytes, offset) => Result.succeed(decode(bytes, offset))
    },
    { arrayOid: PgTypes.OID.timestamptzArray }
  )
  types.register(PgTypes.OID.json, exactJson(PgTypes.OID.json, 0), { arrayOid: PgTypes.OID.jsonArray })
  types.register(PgTypes.OID.jsonb, exactJson(PgTypes.OID.jsonb, 1), { arrayOid: PgTypes.OID.jsonbArray })
  return types
}
