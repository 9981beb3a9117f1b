import { formatPatch, OMIT_HEADERS, structuredPatch } from "diff"

/** Maximum number of differing lines. The time to compute a diff grows with the square of this number. */
export const maxDifferentLines = 2_000

/**
 * Compares two texts by line, and returns the diff in the unified format without file headers. Returns the empty text
 * if the texts are equal, and `undefined` if more than `maxDifferentLines` lines differ.
 */
export const diffTexts = (before: string, after: string): string | undefined => {
  const options = { context: 3, maxEditLength: maxDifferentLines }
  const patch = structuredPatch("", "", before, after, undefined, undefined, options)
  return patch?.hunks.length === 0 ? "" : patch && formatPatch(patch, OMIT_HEADERS)
}
