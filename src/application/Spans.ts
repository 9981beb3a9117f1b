import * as Effect from "effect/Effect"
import * as References from "effect/References"

/**
 * Makes a span of each call of a function where anybody receives spans. Elsewhere a call costs nothing more, which
 * `Effect.fn` does: it notes where each call came from.
 */
export const withSpanIfTraced =
  (name: string) =>
  <Arguments extends ReadonlyArray<unknown>, A, E, R>(call: (...args: Arguments) => Effect.Effect<A, E, R>) =>
  (...args: Arguments): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E, R> => {
      const effect = call(...args)
      return fiber.getRef(References.TracerEnabled)
        ? (Effect.withSpan(effect, name, { captureStackTrace: false }) as Effect.Effect<A, E, R>)
        : effect
    })
