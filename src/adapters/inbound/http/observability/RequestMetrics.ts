import * as Metric from "effect/Metric"
import { metricRegistry } from "../../../../application/support/Observability.ts"

/** Bucket boundaries in seconds. They range from the duration of a cache hit to the deadline of a request. */
const boundaries = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5
]

interface RouteMetrics {
  readonly duration: Metric.Histogram<number>
  readonly byStatus: Map<number, Metric.Counter<number>>
}

const routes = new Map<string, RouteMetrics>()

const findOrCreateRouteMetrics = (route: string): RouteMetrics => {
  const existing = routes.get(route)
  if (existing !== undefined) return existing
  const metrics: RouteMetrics = {
    duration: Metric.histogram("prompt_retrieval_http_request_duration_seconds", {
      description: "Time to respond to requests, by route pattern",
      attributes: { route },
      boundaries
    }),
    byStatus: new Map()
  }
  routes.set(route, metrics)
  return metrics
}

const findOrCreateCounter = (
  route: string,
  { byStatus }: RouteMetrics,
  status: number
): Metric.Counter<number> => {
  const existing = byStatus.get(status)
  if (existing !== undefined) return existing
  const counter = Metric.counter("prompt_retrieval_http_requests_total", {
    description: "Completed requests, by route pattern and status",
    attributes: { route, status: String(status) },
    incremental: true
  })
  byStatus.set(status, counter)
  return counter
}

/** The label of a request whose path matches no route. */
const noRoute = "none"

/**
 * Counts a completed request and records its duration.
 *
 * @param route The pattern of the request's route; `undefined` if the path matches no route.
 */
export const recordRequestMetrics = (
  route: string | undefined,
  status: number,
  milliseconds: number
): void => {
  const label = route ?? noRoute
  const metrics = findOrCreateRouteMetrics(label)
  metrics.duration.updateUnsafe(milliseconds / 1000, metricRegistry)
  findOrCreateCounter(label, metrics, status).updateUnsafe(1, metricRegistry)
}
