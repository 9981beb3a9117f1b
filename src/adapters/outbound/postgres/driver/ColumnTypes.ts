import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"
import { parseJson } from "../../../../domain/Json.ts"
import { type Timestamp, toTimestamp } from "../../../../domain/Timestamp.ts"

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
 * Makes the codec of `json` or `jsonb`. Decoded numbers are exact (`parseJson`). `start` is the number of bytes before
 * the text: `jsonb` has a version byte.
 */
const makeExactJsonCodec = (oid: number, start: number): PgTypes.Codec<unknown> => {
  const parse = (bytes: Uint8Array): unknown => parseJson(utf8.decode(bytes))
  return {
    encode: (value) => PgTypes.encode(value, oid),
    decode: (bytes) => Result.succeed(parse(bytes.subarray(start))),
    read: (bytes, offset, size) => Result.succeed(parse(bytes.subarray(offset + start, offset + size)))
  }
}

/**
 * Returns the driver's column types with three changes: a `timestamptz` is decoded to the domain's `Timestamp`, the
 * numbers of JSON stay exact, and a text keeps every U+FEFF. A row therefore already has the values that the API
 * returns.
 */
export const makeColumnTypes = (): PgTypes.Registry => {
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
  types.register(PgTypes.OID.json, makeExactJsonCodec(PgTypes.OID.json, 0), {
    arrayOid: PgTypes.OID.jsonArray
  })
  types.register(PgTypes.OID.jsonb, makeExactJsonCodec(PgTypes.OID.jsonb, 1), {
    arrayOid: PgTypes.OID.jsonbArray
  })
  return types
}
