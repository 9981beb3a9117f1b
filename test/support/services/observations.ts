import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type CacheLookup,
  Observations,
  type ObservedCache
} from "../../../src/application/ports/Observations.ts"
import type { RateLimitScope } from "../../../src/domain/time/RateWindow.ts"

/** The observations that were reported, in order. */
export interface RecordedObservations {
  readonly rejections: Array<RateLimitScope>
  readonly lookups: Array<readonly [ObservedCache, CacheLookup]>
}

/** Appends every observation to `observed`. */
export const recordObservations = (observed: RecordedObservations): Layer.Layer<Observations> =>
  Layer.succeed(Observations, {
    recordRateLimitRejection: (scope) => void observed.rejections.push(scope),
    recordCacheLookup: (cache, result) => void observed.lookups.push([cache, result]),
    recordOutageResponse: () => {},
    setOutageSecondsLeft: () => {}
  })

export const ignoreObservations: Layer.Layer<Observations> = Layer.unwrap(
  Effect.sync(() => recordObservations({ rejections: [], lookups: [] }))
)
