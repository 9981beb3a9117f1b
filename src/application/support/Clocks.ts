import type { Instant } from "../../domain/time/Instant.ts"

/** Returns the current moment. */
export const readInstant = (): Instant => ({ monotonic: performance.now(), wall: Date.now() })
