import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** The registry that every reader of metrics reads: there is one a process. */
const registry = Context.empty()

/** In seconds: from a ready answer to the deadline of a request (DESIGN.md section 8). */
const boundaries = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5
]

interface RouteSeries {
  readonly duration: Metric.Histogram<number>
  readonly byStatus: Map<number, Metric.Counter<number>>
}

const routes = new Map<string, RouteSeries>()

const seriesOf = (route: string): RouteSeries => {
  const known = routes.get(route)
  if (known !== undefined) return known
  const series: RouteSeries = {
    duration: Metric.histogram("http_request_duration_seconds", {
      description: "How long requests took to answer, by route pattern",
      attributes: { route },
      boundaries
    }),
    byStatus: new Map()
  }
  routes.set(route, series)
  return series
}

const requestsOf = (route: string, { byStatus }: RouteSeries, status: number): Metric.Counter<number> => {
  const known = byStatus.get(status)
  if (known !== undefined) return known
  const requests = Metric.counter("http_requests_total", {
    description: "Requests answered, by route pattern and status",
    attributes: { route, status: String(status) },
    incremental: true
  })
  byStatus.set(status, requests)
  return requests
}

/** What a request that no route is known of counts as. */
const noRoute = "none"

/** Counts one answered request: its route's pattern, or undefined where there is none. Whoever answers calls this once. */
export const recordRequestMetrics = (
  route: string | undefined,
  status: number,
  milliseconds: number
): void => {
  const name = route ?? noRoute
  const series = seriesOf(name)
  series.duration.updateUnsafe(milliseconds / 1000, registry)
  requestsOf(name, series, status).updateUnsafe(1, registry)
}

/** From 0 on, so that the first denial is seen as one. */
const denialsOf = (bucket: "key" | "process") => {
  const denials = Metric.counter("rate_limit_denials_total", {
    description: "Requests refused with 429, by the limit that was reached: the key's or the process's",
    attributes: { bucket },
    incremental: true
  })
  denials.updateUnsafe(0, registry)
  return denials
}
const denials = { key: denialsOf("key"), process: denialsOf("process") }

/** Counts one request that a rate limit refused. */
export const recordRateLimitDenial = (bucket: "key" | "process"): void =>
  denials[bucket].updateUnsafe(1, registry)

const lookupsOf = (cache: "keys" | "responses", result: "hit" | "miss" | "drop") => {
  const lookups = Metric.counter("cache_lookups_total", {
    description: "Look-ups of a cache: found, not there, or there but of before a change",
    attributes: { cache, result },
    incremental: true
  })
  lookups.updateUnsafe(0, registry)
  return () => lookups.updateUnsafe(1, registry)
}

/** Counts the look-ups of one cache, by what came of them. */
export const cacheLookups = (cache: "keys" | "responses") => ({
  hit: lookupsOf(cache, "hit"),
  miss: lookupsOf(cache, "miss"),
  drop: lookupsOf(cache, "drop")
})

/** 1 while changes of the database are heard of, 0 while nothing is cached. */
export const changeFeedUp = Metric.gauge("change_feed_up", {
  description: "1 while changes of the database are heard of, 0 while nothing is cached"
})

/** 1 while the shared counter decides, 0 while this process does. */
export const sharedCounterUp = Metric.gauge("rate_limiter_shared_up", {
  description: "1 while the shared rate limit counter decides, 0 while this process counts alone"
})

/** The use of one pool of database connections: each counts by one up or down. */
export interface PoolUse {
  /** The statements that wait for their connection. */
  readonly waiting: (change: 1 | -1) => void
  /** The statements under way. */
  readonly running: (change: 1 | -1) => void
}

/** Begins to measure a pool that runs at most `limit` statements at once, until the scope closes. */
export const poolUse = Effect.fnUntraced(function* (pool: string, limit: number) {
  const gauge = (name: string, description: string) =>
    Metric.gauge(name, { description, attributes: { pool } })
  const max = gauge("postgres_statements_max", "Statements that the pool's connections run at once")
  yield* Effect.acquireRelease(
    Effect.sync(() => max.modifyUnsafe(limit, registry)),
    () => Effect.sync(() => max.modifyUnsafe(-limit, registry))
  )
  const count = (metric: Metric.Gauge<number>) => (change: 1 | -1) => metric.modifyUnsafe(change, registry)
  const use: PoolUse = {
    waiting: count(gauge("postgres_statements_waiting", "Statements that wait for a connection of the pool")),
    running: count(gauge("postgres_statements_running", "Statements under way on the pool's connections"))
  }
  return use
})

/** Offers a gauge that is read whenever metrics are read. */
export const registerGauge = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.gauge(name, { description }), registry, {
    get: () => ({ value: read() }),
    update: () => {},
    modify: () => {}
  })
}

/** Offers a counter that is read whenever metrics are read. */
export const registerCounter = (name: string, description: string, read: () => number): void => {
  Metric.registerUnsafe(Metric.counter(name, { description, incremental: true }), registry, {
    get: () => ({ count: read(), incremental: true }),
    update: () => {},
    modify: () => {}
  })
}
