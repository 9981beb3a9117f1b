import type { Instant } from "../../domain/Instant.ts"

/** Returns the current moment. */
export const readInstant = (): Instant => ({ monotonic: performance.now(), wall: Date.now() })
