import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { Lifecycle } from "../application/Lifecycle.ts"

/**
 * Runs `prepareSchema`, a migration or a check of the schema, and then marks the service as serving. Retries
 * `prepareSchema` every 500 ms while `isRetryable` is true for its error. Fails with any other error.
 */
export const startServing = <E, R>(
  prepareSchema: Effect.Effect<void, E, R>,
  isRetryable: (error: E) => boolean
): Effect.Effect<void, E, R | Lifecycle> =>
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    yield* Effect.retry(prepareSchema, { while: isRetryable, schedule: Schedule.spaced("500 millis") })
    yield* lifecycle.markServing
  })
