import { type Codec, encode, makeRegistry, OID, type Registry } from "@effect/sql-pg/PgTypes"
import { flow } from "effect/Function"
import * as Result from "effect/Result"
import { type Timestamp, toTimestamp } from "../../../../domain/Timestamp.ts"

/** Milliseconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01. */
const postgresEpoch = 946_684_800_000

const timestampCodec: Codec<Timestamp> = {
  encode: (value) => encode(Date.parse(value), OID.timestamptz),
  decode: (bytes) => {
    const micros = new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0)
    return Result.succeed(toTimestamp(Number(micros / 1000n) + postgresEpoch))
  }
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

/** The codec of `text`. The driver's own codec deletes a leading U+FEFF from a text that contains U+FFFD. */
const textCodec: Codec<string> = {
  encode: (value) => encode(value, OID.text),
  decode: flow(utf8.decode.bind(utf8), Result.succeed)
}

/** Returns the driver's types, except that `timestamptz` is decoded to `Timestamp` and a text keeps every U+FEFF. */
export const makeColumnTypes = (): Registry => {
  const types = makeRegistry()
  types.register(OID.timestamptz, timestampCodec, { arrayOid: OID.timestamptzArray })
  types.register(OID.text, textCodec, { arrayOid: OID.textArray })
  return types
}
