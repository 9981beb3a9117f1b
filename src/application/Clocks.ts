import type { Instant } from "./ports/ChangeFeed.ts"

export const readInstant = (): Instant => ({ monotonic: performance.now(), wall: Date.now() })

/**
 * Returns the milliseconds from `start` to `end`. Takes the larger difference of the two clocks, so that neither a
 * suspension nor setting the wall clock back makes the time shorter. Never negative.
 */
export const elapsedBetween = (start: Instant, end: Instant): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)
