/**
 * A moment on two clocks of one process, in milliseconds. The monotonic clock can stop while the machine is suspended.
 * The wall clock can be set to another time.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/**
 * Returns the milliseconds from `start` to `end`. Takes the larger difference of the two clocks, so that neither a
 * suspension nor setting the wall clock back makes the time shorter. Never negative.
 */
export const elapsedBetween = (start: Instant, end: Instant): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)
