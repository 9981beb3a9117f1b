/**
 * The maximum sizes of the values of a workspace. These sizes limit the size of every response. Imports reject larger
 * values, and the database schema enforces the same limits. The exceptions are `sourceBytes`, `pageSourceBytes` and the
 * size of resolved content, which reads check (docs/limits.md).
 */
export const sizes = {
  /** The content of a prompt, a version or a fragment, or the resolved content of a prompt, in bytes of UTF-8. */
  contentBytes: 1024 * 1024,
  /** The contents and the overrides of a prompt and its fragments together, before the slots are filled, in bytes. */
  sourceBytes: 2 * 1024 * 1024,
  /** The sum of the contents and overrides of all prompts that one request resolves, in bytes. */
  pageSourceBytes: 8 * 1024 * 1024,
  /** The description of a prompt, or the summary of a change, in bytes of UTF-8. */
  summaryBytes: 16 * 1024,
  /** `metadata` or `variable_overrides`, in bytes of the JSON that PostgreSQL writes. */
  jsonBytes: 64 * 1024,
  /** The number of levels of nesting in `metadata` or `variable_overrides`. */
  jsonLevels: 100,
  /** A title, a name, an email or any other short text, in Unicode code points, as PostgreSQL counts. */
  nameLength: 256,
  /** The number of tags of a prompt. */
  promptTags: 100,
  /** The number of fragments of a prompt. A fragment that occurs twice is counted twice. */
  promptFragments: 100,
  /** The number of slots in the content of a prompt, a version or a fragment, including duplicates. */
  contentSlots: 10_000
} as const

/** Returns true if a text has at most `sizes.nameLength` code points. Does not split a huge text, to save memory. */
export const fitsName = (text: string): boolean =>
  text.length <= 2 * sizes.nameLength && [...text].length <= sizes.nameLength

/** The limits of 32-bit integers. Version numbers, positions and numbers of items are within these limits. */
export const minInt32 = -2147483648
export const maxInt32 = 2147483647

const countTextBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text))

/** Returns how many bytes a number takes as text without an exponent. */
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
