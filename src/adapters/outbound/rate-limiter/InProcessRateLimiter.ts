import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { makeFixedWindowCounter } from "./FixedWindowCounter.ts"

/** Counts in this process alone: what runs without a shared counter. It never waits, and forgets past minutes. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
  const counter = makeFixedWindowCounter()
  return {
    isKnownExhausted: counter.isKnownExhausted,
    take: (bucket, limit, now) => Effect.sync(() => counter.take(bucket, limit, now)),
    refund: (bucket, now) => Effect.sync(() => counter.refund(bucket, now))
  }
})
