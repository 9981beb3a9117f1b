import { formatDecimal, isExactNumber } from "./Json.ts"

const countTextBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text))

const countNumberBytes = (text: string): number => (formatDecimal(text) ?? text).length

/**
 * Returns the size of a JSON value: the number of bytes of the text that PostgreSQL writes for the value. In this text,
 * a space follows each comma and colon, and numbers have no exponents.
 */
export const countJsonBytes = (value: unknown): number => {
  if (typeof value === "string") return countTextBytes(value)
  if (typeof value === "number") return countNumberBytes(String(value))
  if (typeof value !== "object" || value === null) return String(value).length
  if (isExactNumber(value)) return countNumberBytes(value.rawJSON)
  const members = Array.isArray(value)
    ? value.map(countJsonBytes)
    : Object.entries(value).map(([name, member]) => countTextBytes(name) + 2 + countJsonBytes(member))
  return 2 + members.reduce((sum, bytes) => sum + bytes, 0) + 2 * Math.max(0, members.length - 1)
}
