/**
 * The largest sizes of the values of a workspace, so that every response is bounded. Imports reject larger values,
 * and the database schema enforces the same limits. docs/limits.md lists them.
 */
export const sizes = {
  /** A content of a prompt, a version or a fragment, and a resolved content, in bytes of UTF-8. */
  contentBytes: 1024 * 1024,
  /** The contents of a prompt and its fragments together, before their slots are filled, in bytes of UTF-8. */
  sourceBytes: 2 * 1024 * 1024,
  /** A description of a prompt and a summary of a change, in bytes of UTF-8. */
  summaryBytes: 16 * 1024,
  /** `metadata` and `variable_overrides`, in bytes of the JSON that PostgreSQL writes. */
  jsonBytes: 64 * 1024,
  /** The levels of nesting of `metadata` and `variable_overrides`. */
  jsonLevels: 100,
  /** A title, a name, an email, and all other texts, in characters: Unicode code points, as PostgreSQL counts them. */
  nameLength: 256,
  /** The tags of a prompt. */
  promptTags: 100,
  /** The fragments of a prompt, counted with repetitions. */
  promptFragments: 100,
  /** The slots of a content, counted with repetitions. */
  contentSlots: 10_000
} as const

/** Returns true if a text has at most `maxBytes` bytes of UTF-8. */
export const fitsBytes = (text: string, maxBytes: number): boolean =>
  text.length * 3 <= maxBytes || (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes)

/** Returns true if a text has at most `sizes.nameLength` characters. */
export const fitsName = (text: string): boolean => {
  const { nameLength } = sizes
  return text.length <= nameLength || (text.length <= 2 * nameLength && [...text].length <= nameLength)
}

/** The length of the shortest slot, `{{x}}`. */
export const minSlotLength = 5

/** Matches a slot as PostgreSQL counts slots: by code points, blank names included. */
const countedSlotPattern = /\{\{[^{}]{1,256}\}\}/gu

/** Returns true if a content has at most `sizes.contentSlots` slots. */
export const fitsSlots = (content: string): boolean =>
  content.length <= minSlotLength * sizes.contentSlots ||
  (content.match(countedSlotPattern)?.length ?? 0) <= sizes.contentSlots

/** The range of 32-bit integers. Versions, positions and items are numbered within it. */
export const minInt32 = -2147483648
export const maxInt32 = 2147483647
