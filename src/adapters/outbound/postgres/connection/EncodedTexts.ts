import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as Result from "effect/Result"

/** An array of texts in the binary format of PostgreSQL's `text[]`. */
export class EncodedTexts {
  readonly bytes: Uint8Array
  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

const { textArray } = PgTypes.OID

/** Lets `toTextArray` pass arrays to statements. */
export const registerEncodedTexts = (types: PgTypes.Registry): PgTypes.Registry => {
  types.register<unknown>(textArray, {
    encode: (value) =>
      value instanceof EncodedTexts ? Result.succeed(value.bytes) : PgTypes.encode(value, textArray),
    decode: (bytes) => PgTypes.decode(bytes, textArray, 1)
  })
  return types
}

/** Returns the parameter of a statement for an array. */
export const toTextArray = (value: EncodedTexts): PgTypes.Parameter => ({
  [PgTypes.ParameterTypeId]: PgTypes.ParameterTypeId,
  oid: textArray,
  value
})
