/**
 * A moment on two clocks of one process, in milliseconds. The monotonic clock stops while the machine is suspended, and
 * the wall clock can be set.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/**
 * Returns how long after `start` the moment `end` is, in milliseconds: the larger of the two clocks' differences,
 * so that neither a suspension nor a clock that is set back makes the time shorter. Never negative.
 */
export const elapsedBetween = (start: Instant, end: Instant): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)

/** Returns the earlier one of two moments. */
export const earlierOf = (a: Instant, b: Instant): Instant => (a.monotonic <= b.monotonic ? a : b)
