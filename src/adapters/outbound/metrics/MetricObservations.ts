import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { metricRegistry } from "../../../application/MetricRegistry.ts"
import {
  type CacheLookup,
  type ObservedCache,
  Observations
} from "../../../application/ports/Observations.ts"
import type { RateLimitScope } from "../../../domain/RateWindow.ts"

type Count = () => void

/** Registers a counter at 0, so that rates are right from its first increment on. */
const makeCounter = (
  name: string,
  description: string,
  attributes: Readonly<Record<string, string>>
): Count => {
  const counter = Metric.counter(name, { description, attributes, incremental: true })
  counter.updateUnsafe(0, metricRegistry)
  return () => counter.updateUnsafe(1, metricRegistry)
}

/** Makes the counter of one scope. The label of the scope is `bucket`, which dashboards use. */
const makeDenialCounter = (scope: RateLimitScope): Count =>
  makeCounter(
    "rate_limit_denials_total",
    "Requests rejected with 429, by the limit that was exceeded: the key's or the process's",
    { bucket: scope }
  )

const makeLookupCounters = (cache: ObservedCache): Readonly<Record<CacheLookup, Count>> => {
  const makeLookupCounter = (result: CacheLookup) =>
    makeCounter(
      "cache_lookups_total",
      "Cache lookups: hit, miss, or drop (the workspace has changed since the entry was stored)",
      { cache, result }
    )
  return { hit: makeLookupCounter("hit"), miss: makeLookupCounter("miss"), drop: makeLookupCounter("drop") }
}

/** Counts observations as metrics of this process. */
export const layer: Layer.Layer<Observations> = Layer.sync(Observations, () => {
  const denials = { key: makeDenialCounter("key"), process: makeDenialCounter("process") }
  const lookups = { keys: makeLookupCounters("keys"), responses: makeLookupCounters("responses") }
  return {
    recordRateLimitDenial: (scope) => denials[scope](),
    recordCacheLookup: (cache, result) => lookups[cache][result]()
  }
})
