import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { makeFixedWindowCounter } from "./FixedWindowCounter.ts"

/** Counts requests in the memory of this process, for a service without a shared counter. */
export const layer: Layer.Layer<RateLimiter> = Layer.sync(RateLimiter, () => {
  const counter = makeFixedWindowCounter()
  return {
    isKnownExhausted: counter.isKnownExhausted,
    take: (bucket, limit, now) => Effect.sync(() => counter.take(bucket, limit, now)),
    refund: (bucket, now) => Effect.sync(() => counter.refund(bucket, now))
  }
})
