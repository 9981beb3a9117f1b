import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { AdmittedCaller } from "../../../application/Admission.ts"
import { metricRegistry } from "../../../application/observability/Instrumentation.ts"
import { keyPrefix } from "../../../domain/ApiKey.ts"
import { requestIdPattern } from "../contract/Headers.ts"
import { type HttpRequest, type HttpResponse, isGetOrHead, withCommonHeaders } from "./HttpMessage.ts"

/** The facts to log and measure. The app sets `route` and `caller` early, because a failure returns only an error. */
interface RequestFacts {
  /** The method; `undefined` if Node could not parse the request. */
  readonly method: string | undefined
  readonly requestId: string
  /** The value of `performance.now()` when the request arrived. */
  readonly startedAt: number
  /**
   * True once the request is held. The metrics omit the duration of a held request, because the duration includes the
   * wait.
   */
  isHeld: boolean
  /** The pattern of the route; `undefined` if the path matches no route. */
  route: string | undefined
  caller: AdmittedCaller | undefined
}

/** A request that the app responds to. */
export interface RequestContext extends RequestFacts {
  readonly request: HttpRequest
  readonly cacheKey: string | undefined
  /** How long the request may wait for a change, in seconds; `undefined` if the request does not wait. */
  readonly waitSeconds: number | undefined
  /** True once the request counts against the rate limits. A request counts at most once. */
  isCounted: boolean
}

/**
 * Returns the cache key of a request: a hash of the exact bytes of its `Authorization` header and its target. Returns
 * `undefined` for a request without `Authorization`, or with a method other than GET and HEAD. The cache never serves
 * these requests.
 */
const toCacheKey = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

const bearerPattern = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the token of an `Authorization` header, or `undefined` if the header is missing or malformed. A well-formed
 * header is exactly one `Bearer <token>`: the scheme in any case, one or more spaces, and a token of visible ASCII
 * characters without a comma.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearerPattern.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}

/**
 * Returns the caller's request id. If this id is invalid or could contain a key, returns a new id, because the log
 * contains the id of each request.
 */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()

/** The maximum time that a request may wait, in seconds. The service shortens a longer wait to this time. */
const maxWaitSeconds = 50

/** Matches the next preference of a `Prefer` header (RFC 7240): its name, and its value as a quoted string or a token. */
const preferencePattern =
  /[\s,]*([\w!#$%&'*+\-.^`|~]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+\-.^`|~]+)))?\s*(?:;(?:[^",]|"(?:[^"\\]|\\.)*")*)?(?:,|$)/gy

/**
 * Returns the seconds for which a request may wait for a change, or `undefined` if the request does not wait. Only a
 * conditional GET may wait. The seconds are the value of the first preference `wait`. If this value is 0 or malformed,
 * the request does not wait.
 */
export const findWaitSeconds = ({ method, headers, startWait }: HttpRequest): number | undefined => {
  const { prefer, "if-none-match": ifNoneMatch } = headers
  if (prefer === undefined || ifNoneMatch === undefined || method !== "GET" || startWait === undefined)
    return undefined
  for (const [, name, quoted, token] of prefer.matchAll(preferencePattern)) {
    if (name?.toLowerCase() !== "wait") continue
    const value = quoted ?? token ?? ""
    const seconds = /^\d+$/.test(value) ? Math.min(Number(value), maxWaitSeconds) : 0
    return seconds === 0 ? undefined : seconds
  }
  return undefined
}

/**
 * Marks a request as counted against the rate limits. Returns true if the request was not marked before. A request is
 * marked before the limiter has decided, so a known response that is sent meanwhile is not rejected.
 */
export const claimCount = (context: RequestContext): boolean => {
  const mustCount = !context.isCounted
  context.isCounted = true
  return mustCount
}

export const makeRequestContext = (request: HttpRequest): RequestContext => ({
  request,
  method: request.method,
  requestId: chooseRequestId(request.headers["x-request-id"]),
  startedAt: performance.now(),
  cacheKey: toCacheKey(request),
  waitSeconds: findWaitSeconds(request),
  isCounted: false,
  isHeld: false,
  route: undefined,
  caller: undefined
})

/** The bucket boundaries of the histogram, in seconds: from the duration of a cache hit to the deadline of a request. */
const boundaries = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5
]

/** The metrics of each route and status. Effect's registry shares the histogram among the statuses of a route. */
const metrics = new Map<
  string,
  readonly [duration: Metric.Histogram<number>, count: Metric.Counter<number>]
>()

const findOrMakeMetrics = (route: string, status: number) => {
  const key = `${route} ${status}`
  const existing = metrics.get(key)
  if (existing !== undefined) return existing
  const made = [
    Metric.histogram("prompt_retrieval_http_request_duration_seconds", {
      description: "Time to respond to requests, by route pattern",
      attributes: { route },
      boundaries
    }),
    Metric.counter("prompt_retrieval_http_requests_total", {
      description: "Completed requests, by route pattern and status",
      attributes: { route, status: String(status) },
      incremental: true
    })
  ] as const
  metrics.set(key, made)
  return made
}

/** The routes that load balancers and supervisors request continuously. */
const probeRoutes: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz"])

/**
 * Completes a request: counts it, writes its log line, and returns the response with the headers that every response
 * has. The log level is debug for the probe routes, and info for all other routes. The log line contains no text that a
 * caller can choose freely: no path, no query, and no header except the request id.
 */
export const completeRequest = (
  { method, route, startedAt, isHeld, requestId, caller }: RequestFacts,
  response: HttpResponse
): Effect.Effect<HttpResponse> => {
  const milliseconds = performance.now() - startedAt
  const { status } = response
  const [duration, count] = findOrMakeMetrics(route ?? "none", status)
  if (!isHeld) duration.updateUnsafe(milliseconds / 1000, metricRegistry)
  count.updateUnsafe(1, metricRegistry)
  const log = probeRoutes.has(route) ? Effect.logDebug : Effect.logInfo
  return Effect.as(
    log("request", {
      method: method ?? null,
      route: route ?? null,
      status,
      duration_ms: Math.round(milliseconds * 1000) / 1000,
      request_id: requestId,
      workspace_id: caller?.workspaceId ?? null,
      key_id: caller?.keyId ?? null
    }),
    withCommonHeaders(response, requestId)
  )
}
