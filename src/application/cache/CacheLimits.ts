import type { CacheLimits } from "./RevisionedCache.ts"

const mebibyte = 1024 * 1024

/**
 * The limits on what a process remembers of the database, except for MCP (`PromptCatalog.ts`). In addition, a value is
 * not served after a change of its workspace, or while the change feed is down (`RevisionedCache`).
 */
export const cacheLimits = {
  /** API keys by their hashes. Each key has the size 1, and takes less than 1 KiB of memory. */
  keys: { maxSize: 10_000, maxAgeMs: 60_000 },
  /** The totals of lists by workspace and filter. Sizes are in bytes. */
  totals: { maxSize: 8 * mebibyte, maxAgeMs: 30_000 },
  /**
   * Responses with the status 200 by `Authorization` and target. Sizes are in bytes. The maximum age is also the
   * `s-maxage` of these responses (specification 8).
   */
  responses: { maxSize: 32 * mebibyte, maxValueSize: mebibyte, maxAgeMs: 30_000 }
} satisfies Record<string, CacheLimits>
