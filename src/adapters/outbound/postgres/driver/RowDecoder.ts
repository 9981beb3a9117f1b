import * as Schema from "effect/Schema"

/** Decodes rows. Throws for a row that does not match its schema: such a row is a defect. */
export type RowDecoder<A> = (rows: ReadonlyArray<unknown>) => ReadonlyArray<A>

/** Returns the decoder of rows with the columns of a schema; further columns are ignored. */
export const makeRowDecoder = <A>(row: Schema.Decoder<A>): RowDecoder<A> => {
  const decode = Schema.decodeUnknownSync(row)
  return (rows) => rows.map((row) => decode(row))
}

/** Returns the decoder of the first row. It throws if there is no row. */
export const makeFirstRowDecoder = <A>(row: Schema.Decoder<A>): ((rows: ReadonlyArray<unknown>) => A) => {
  const decode = Schema.decodeUnknownSync(row)
  return ([first]) => decode(first)
}
