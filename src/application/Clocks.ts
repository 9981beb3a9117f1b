import type { Instant } from "../domain/time/Instant.ts"

export const readInstant = (): Instant => ({ monotonic: performance.now(), wall: Date.now() })
