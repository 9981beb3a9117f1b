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

const utf8 = new TextDecoder()
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Decodes `json` and `jsonb`. `start` skips the version byte of `jsonb`. Numbers are exact in at most
 * `maxExactBytes`; in larger JSON they are JavaScript numbers.
 */
const exactJson = (oid: number, start: number, maxExactBytes: number): PgTypes.Codec<unknown> => {
  const parse = (bytes: Uint8Array): unknown => {
    const text = utf8.decode(bytes)
    return bytes.length > maxExactBytes ? JSON.parse(text) : parseJson(text)
  }
  return {
    encode: (value) => PgTypes.encode(value, oid),
    decode: (bytes) => Result.succeed(parse(bytes.subarray(start))),
    read: (bytes, offset, size) => Result.succeed(parse(bytes.subarray(offset + start, offset + size)))
  }
}

/** Node keeps strings from more bytes than this outside the heap of V8, which does not count them when it collects garbage. */
const maxPieceBytes = 512 * 1024

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Decodes UTF-8 in pieces, so that even a string of many MiB is on the heap. */
const decodeInPieces = (bytes: Uint8Array, offset: number, size: number): string => {
  const limit = offset + size
  let text = ""
  for (let start = offset; start < limit; ) {
    let end = Math.min(start + maxPieceBytes, limit)
    while (end < limit && isContinuation(bytes[end])) end--
    text += strictUtf8.decode(bytes.subarray(start, end))
    start = end
  }
  return text
}

/** Registers `text` as strings on the heap. */
const registerLargeText = (types: PgTypes.Registry): void => {
  const { text } = PgTypes.OID
  types.register(text, {
    encode: (value) => PgTypes.encode(value, text),
    decode: (bytes) => Result.succeed(decodeInPieces(bytes, 0, bytes.length)),
    read: (bytes, offset, size) => Result.succeed(decodeInPieces(bytes, offset, size))
  })
}

/**
 * Returns the driver's column types, except that a `timestamptz` is the domain's `Timestamp` and that JSON keeps
 * exact numbers. A row therefore needs no mapping to the resource.
 *
 * @param maxExactJsonBytes parsing exact numbers is up to 20 times slower than `JSON.parse` and blocks the event
 * loop, so pools that serve requests limit it
 * @param texts whether texts may have several MiB
 */
export const makeColumnTypes = (
  maxExactJsonBytes = Number.POSITIVE_INFINITY,
  texts: "small" | "large" = "small"
): PgTypes.Registry => {
  const types = PgTypes.makeRegistry()
  if (texts === "large") registerLargeText(types)
  types.register<Timestamp>(
    PgTypes.OID.timestamptz,
    {
      encode: (value) => PgTypes.encode(Date.parse(value), PgTypes.OID.timestamptz),
      decode: (bytes) => Result.succeed(decodeTimestamp(bytes, 0)),
      read: (bytes, offset) => Result.succeed(decodeTimestamp(bytes, offset))
    },
    { arrayOid: PgTypes.OID.timestamptzArray }
  )
  types.register(PgTypes.OID.json, exactJson(PgTypes.OID.json, 0, maxExactJsonBytes), {
    arrayOid: PgTypes.OID.jsonArray
  })
  types.register(PgTypes.OID.jsonb, exactJson(PgTypes.OID.jsonb, 1, maxExactJsonBytes), {
    arrayOid: PgTypes.OID.jsonbArray
  })
  return types
}
