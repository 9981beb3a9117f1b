import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"
import { type Timestamp, toTimestamp } from "../../../domain/Timestamp.ts"

/** Milliseconds from the Unix epoch to PostgreSQL's, 2000-01-01. */
const postgresEpoch = 946_684_800_000

const decode = (bytes: Uint8Array, offset: number): Timestamp => {
  const micros = new DataView(bytes.buffer, bytes.byteOffset + offset, 8).getBigInt64(0)
  return toTimestamp(Number(micros / 1000n) + postgresEpoch)
}

/**
 * The driver's types, but for `timestamptz`, which comes as the domain's Timestamp: so a row is the resource, and
 * there is no mapping between them.
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
  return types
}
