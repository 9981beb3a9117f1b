import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RateLimiter } from "../../application/RateLimiter.ts"
import { makeWindowCounter } from "../../application/WindowCounter.ts"

/** Counts in this process alone: what runs without a shared counter. It never waits, and forgets past minutes. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
  const counter = makeWindowCounter()
  return {
    isFull: counter.isFull,
    take: (bucket, limit, now) => Effect.sync(() => counter.take(bucket, limit, now)),
    refund: (bucket, now) => Effect.sync(() => counter.refund(bucket, now))
  }
})
