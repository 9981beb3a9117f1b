import { now } from "../transport/Limits.ts"

/**
 * A point in time on two clocks, in milliseconds: the monotonic clock may stop while the machine is suspended, and the
 * wall clock may be set back.
 */
export type Instant = readonly [monotonic: number, wall: number]

export const readClocks = (): Instant => [now(), Date.now()]

/** Returns the instant `millis` milliseconds before the given instant. */
export const subtract = ([monotonic, wall]: Instant, millis: number): Instant => [
  monotonic - millis,
  wall - millis
]

/**
 * Returns the milliseconds from one instant to another, by default to now. Takes the larger difference of the two
 * clocks, so that a text is never treated as younger than it is.
 */
export const getElapsed = (from: Instant, to: Instant = readClocks()): number =>
  Math.max(to[0] - from[0], to[1] - from[1])
