import * as Schema from "effect/Schema"

/** Decodes rows. Throws if a row does not match the schema, because such a row is a defect. */
export type RowDecoder<A> = (rows: ReadonlyArray<unknown>) => ReadonlyArray<A>

/** Returns the decoder for rows that have the columns of a schema. Other columns are ignored. */
export const makeRowDecoder = <A>(row: Schema.Decoder<A>): RowDecoder<A> => {
  const decode = Schema.decodeUnknownSync(row)
  return (rows) => rows.map((row) => decode(row))
}

/** Returns a function that decodes the first of the given rows. The function throws if there is no row. */
export const makeFirstRowDecoder = <A>(row: Schema.Decoder<A>): ((rows: ReadonlyArray<unknown>) => A) => {
  const decode = Schema.decodeUnknownSync(row)
  return ([first]) => decode(first)
}
