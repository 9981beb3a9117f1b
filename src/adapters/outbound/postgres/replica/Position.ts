/** A position in the write-ahead log (WAL), in bytes. */
export type Position = bigint

/** Parses the text of a `pg_lsn`, such as `16/B374D848`. */
export const parsePosition = (text: string): Position => {
  const [high, low] = text.split("/")
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`)
}

/** Formats a position as the text of a `pg_lsn`. */
export const formatPosition = (position: Position): string =>
  `${(position >> 32n).toString(16)}/${(position & 0xffff_ffffn).toString(16)}`
