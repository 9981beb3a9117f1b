const countTextBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text))

/** Returns the length of a number that is written without an exponent. */
const countNumberBytes = (number: number): number => {
  const [mantissa = "", exponent] = String(number).split("e")
  if (exponent === undefined) return mantissa.length
  const sign = number < 0 ? 1 : 0
  const power = Number(exponent)
  const digits = mantissa.match(/\d/g)?.length ?? 0
  return power > 0 ? sign + power + 1 : sign + "0.".length + digits - 1 - power
}

/**
 * Returns the size of a JSON value: the number of bytes of the text that PostgreSQL writes for the value. In this text,
 * a space follows each comma and colon, and numbers have no exponents.
 */
export const countJsonBytes = (value: unknown): number => {
  if (typeof value === "string") return countTextBytes(value)
  if (typeof value === "number") return countNumberBytes(value)
  if (typeof value !== "object" || value === null) return String(value).length
  const members = Array.isArray(value)
    ? value.map(countJsonBytes)
    : Object.entries(value).map(([name, member]) => countTextBytes(name) + 2 + countJsonBytes(member))
  return 2 + members.reduce((sum, bytes) => sum + bytes, 0) + 2 * Math.max(0, members.length - 1)
}
