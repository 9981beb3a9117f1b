import { now } from "./Limits.ts"

/**
 * A point in time on two clocks, in milliseconds: the monotonic clock may stand still while the machine is suspended,
 * and the wall clock may be set back.
 */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

/** Reads both clocks. */
export const readClocks = (): Instant => ({ monotonic: now(), wall: Date.now() })

/** Returns the instant that was `millis` milliseconds before another. */
export const subtract = ({ monotonic, wall }: Instant, millis: number): Instant => ({
  monotonic: monotonic - millis,
  wall: wall - millis
})

/**
 * Returns the milliseconds from one instant to another, by default to now: the larger difference of the two clocks,
 * so that a text is never taken to be younger than it is.
 */
export const getElapsed = (from: Instant, to: Instant = readClocks()): number =>
  Math.max(to.monotonic - from.monotonic, to.wall - from.wall)
