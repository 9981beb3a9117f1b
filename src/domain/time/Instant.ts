/**
 * A moment on two clocks of one process, in milliseconds. The monotonic clock stops while the machine is suspended, and
 * the wall clock can be set.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/**
 * Returns how long after `start` the moment `end` is, in milliseconds: the larger of the two clocks' differences, so
 * neither a suspension nor setting the wall clock back shortens the time. Never negative.
 */
export const elapsedBetween = (start: Instant, end: Instant): number =>
  Math.max(0, end.monotonic - start.monotonic, end.wall - start.wall)
