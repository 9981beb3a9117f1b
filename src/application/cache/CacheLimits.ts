import type { CacheLimits } from "./RevisionedCache.ts"

const mebibyte = 1024 * 1024

/**
 * Everything that a process remembers of the database. `RevisionedCache` states what else ends a value: a change of its
 * workspace, and a change feed that is down.
 */
export const cacheLimits = {
  /** API keys by their hashes. The size of a key is 1, and its memory less than 1 KiB. */
  keys: { maxSize: 10_000, maxAgeMs: 60_000 },
  /** The totals of lists by workspace and filter. Sizes are in bytes. */
  totals: { maxSize: 8 * mebibyte, maxAgeMs: 30_000 },
  /**
   * Responses with the status 200 by `Authorization` and target. Sizes are in bytes. The maximum age is the `s-maxage` of
   * these responses (specification 8).
   */
  responses: { maxSize: 32 * mebibyte, maxValueSize: mebibyte, maxAgeMs: 30_000 }
} satisfies Record<string, CacheLimits>
