import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { metricRegistry, registerCounter } from "../../../application/support/Observability.ts"
import {
  type CacheLookup,
  type ObservedCache,
  Observations
} from "../../../application/ports/Observations.ts"
import type { RateLimitScope } from "../../../domain/time/RateWindow.ts"

type Increment = () => void

/** The label of the scope is named `bucket`, because dashboards use this name. */
const makeRejectionCounter = (scope: RateLimitScope): Increment =>
  registerCounter(
    "prompt_retrieval_rate_limit_denials_total",
    "Requests rejected with 429, by the limit that was exceeded: the key's or the process's",
    { bucket: scope }
  )

const makeLookupCounters = (cache: ObservedCache): Readonly<Record<CacheLookup, Increment>> => {
  const makeLookupCounter = (result: CacheLookup) =>
    registerCounter(
      "prompt_retrieval_cache_lookups_total",
      "Cache lookups: hit, miss, or drop (the workspace has changed since the entry was stored)",
      { cache, result }
    )
  return { hit: makeLookupCounter("hit"), miss: makeLookupCounter("miss"), drop: makeLookupCounter("drop") }
}

/** The upper bounds of the histogram's buckets, in seconds. */
const ageBoundaries = [1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 300, 600, 1200, 3600]

const outageResponseAge = Metric.histogram("prompt_retrieval_outage_response_age_seconds", {
  description: "Age of the responses that were served without the database, since the last contact with it",
  boundaries: ageBoundaries
})

const outageSecondsLeft = Metric.gauge("prompt_retrieval_outage_seconds_left", {
  description:
    "How long known responses are still served without the database; OUTAGE_MAX_AGE while it is reachable"
})

export const layer: Layer.Layer<Observations> = Layer.sync(Observations, () => {
  const rejections = { key: makeRejectionCounter("key"), process: makeRejectionCounter("process") }
  const lookups = { keys: makeLookupCounters("keys"), responses: makeLookupCounters("responses") }
  const countOutageResponse = registerCounter(
    "prompt_retrieval_outage_responses_total",
    "Responses that were served without the database because they were current when contact was lost"
  )
  // Registers the histogram, so that the metrics include it even before its first sample.
  outageResponseAge.valueUnsafe(metricRegistry)
  return {
    recordRateLimitRejection: (scope) => rejections[scope](),
    recordCacheLookup: (cache, result) => lookups[cache][result](),
    recordOutageResponse: (ageSeconds) => {
      countOutageResponse()
      outageResponseAge.updateUnsafe(ageSeconds, metricRegistry)
    },
    setOutageSecondsLeft: (seconds) => outageSecondsLeft.updateUnsafe(seconds, metricRegistry)
  }
})
