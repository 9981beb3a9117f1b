import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Admission } from "../../../application/access/Admission.ts"
import { KnownKeys } from "../../../application/cache/CachingKeyStore.ts"
import { Outage } from "../../../application/cache/Outage.ts"
import * as ResponseCache from "../../../application/cache/ResponseCache.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { isExpired, KeyRevoked } from "../../../domain/ApiKey.ts"
import type { OperationalPath } from "../contract/Api.ts"
import { type ApiError, errors, MethodNotAllowed, RouteNotFound } from "../contract/Errors.ts"
import { type Endpoint, makeEndpoints } from "./Endpoints.ts"
import {
  BodyIncomplete,
  type HttpRequest,
  type HttpResponse,
  isGetOrHead,
  type Transport,
  withCommonHeaders
} from "./HttpMessage.ts"
import type { MountedEndpoint } from "./MountedEndpoint.ts"
import { recordRequest } from "./observability/CompletedRequest.ts"
import { inSpan, checkIsTraced } from "./observability/Tracing.ts"
import { makeOperationalRoutes } from "./OperationalRoutes.ts"
import { BasePath } from "./request/PublicUrl.ts"
import { requestDeadlineMs, withDeadline } from "../../../application/support/Deadline.ts"
import { type MatchedRoute, matchRoute, parseBearerToken } from "./request/RequestHead.ts"
import { makeRequestContext, type RequestContext } from "./RequestContext.ts"
import { respondToFailures } from "./response/ErrorResponse.ts"
import { toOutageResponse } from "./response/OutageResponse.ts"
import {
  isSameRepresentation,
  type Representation,
  representResource,
  respondIfMemoryAllows
} from "./response/Representation.ts"

/** Responds to a request, and never fails. If the transport has no room for the body, the response is 503. */
export type App = (request: HttpRequest, transport?: Transport) => Effect.Effect<HttpResponse>

/** A transport that has room for every response, reads no request bodies and streams no responses. */
const simpleTransport: Transport = {
  hasRoom: () => true,
  readBody: () => Effect.fail(BodyIncomplete),
  canStream: () => false
}

type CachedResponse = ResponseCache.CachedResponse<Representation>

/** Returns true if a request target is this path, with or without a query. */
const isPathOf = (target: string, path: string): boolean =>
  target.startsWith(path) && (target.length === path.length || target[path.length] === "?")

/** Returns true if an error is about the content of the workspace, so it contradicts a response with the status 200. */
const isContradiction = ({ _tag }: ApiError): boolean => errors[_tag].subject === "workspace"

const withRequestDeadline = withDeadline(requestDeadlineMs, Unavailable)

/**
 * Makes the app, which does not depend on a transport. The functions below are in the order in which a request passes
 * through them.
 *
 * @param mounted the endpoint of another adapter, if there is one
 */
export const makeApp = Effect.fnUntraced(function* (mounted?: MountedEndpoint["Service"]) {
  const admission = yield* Admission
  const endpoints = yield* makeEndpoints
  const operationalRoutes = yield* makeOperationalRoutes
  const responseCache = new ResponseCache.ResponseCache<Representation>(
    yield* ChangeFeed,
    ({ full }) => full.body.length,
    isSameRepresentation
  )
  const knownKeys = yield* KnownKeys
  const outage = yield* Outage
  const isTraced = yield* checkIsTraced
  const basePath = yield* BasePath

  const app: App = (request, transport = simpleTransport) =>
    Effect.suspend(() => {
      const context = makeRequestContext(request, transport)
      // `respondMounted` and `respond` set `context.route` before they return, so the span below has the name of the
      // route.
      const response =
        mounted !== undefined && isPathOf(request.target, mounted.path)
          ? respondMounted(context, mounted)
          : respondToFailures(respond(context), context.requestId)
      const traced = isTraced ? inSpan(request, context.route, response, ({ status }) => status) : response
      return Effect.flatMap(traced, (response) =>
        Effect.as(record(context, response), withCommonHeaders(response, context.requestId))
      )
    })

  const respondMounted = (
    context: RequestContext,
    { path, respond }: NonNullable<MountedEndpoint["Service"]>
  ): Effect.Effect<HttpResponse> => {
    const { request, requestId, transport } = context
    const { method, headers } = request
    const token = parseBearerToken(headers.authorization)
    context.route = path
    return Effect.map(respond({ method, headers, token, requestId, transport }), ({ caller, response }) => {
      context.caller = caller
      return response
    })
  }

  const respond = (context: RequestContext): Effect.Effect<HttpResponse, ApiError> => {
    const { cacheKey } = context
    const cached = cacheKey === undefined ? undefined : responseCache.get(cacheKey)
    if (cached !== undefined) return respondFromCache(context, cached)
    const fresh = withRequestDeadline(respondFresh(context))
    return cacheKey === undefined || responseCache.findLastKnown(cacheKey) === undefined
      ? fresh
      : outage.orKnown(fresh, respondKnown(context, cacheKey))
  }

  /** Checks only the key's expiry and the rate limits. All other checks passed before the response was cached. */
  const respondFromCache = (context: RequestContext, cached: CachedResponse) => {
    const { caller, route, representation } = cached
    context.route = route
    context.caller = caller
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.andThen(
        admission.admitAgain(caller, now),
        respondIfMemoryAllows(context.request, representation, context.transport)
      )
    )
  }

  /**
   * Responds with the known response in an outage of the database. Checks the expiry of the key and the rate limits, as
   * for a cached response. Does not count a request that was already admitted.
   */
  const respondKnown = (context: RequestContext, cacheKey: string): Effect.Effect<HttpResponse, ApiError> =>
    Effect.gen(function* () {
      const known = responseCache.findLastKnown(cacheKey)
      if (known === undefined) return yield* Effect.fail(Unavailable)
      const { caller, route, representation } = known
      const now = yield* Clock.currentTimeMillis
      if (isExpired(caller.keyExpiresAt, now)) return yield* Effect.fail(KeyRevoked)
      if (context.caller === undefined) yield* admission.admitAgain(caller, now)
      context.route = route
      context.caller = caller
      const ageMs = outage.findAge()
      const isKnown =
        knownKeys.accepts(caller.keyHash, now) && responseCache.findLastKnown(cacheKey) === known
      if (ageMs === undefined || !isKnown) return yield* Effect.fail(Unavailable)
      yield* outage.recordResponse(ageMs)
      const response = yield* respondIfMemoryAllows(context.request, representation, context.transport)
      return toOutageResponse(response, ageMs)
    })

  const respondFresh = (context: RequestContext): Effect.Effect<HttpResponse, ApiError> => {
    const { request } = context
    const matched = matchRoute(request.target, basePath)
    if (matched === undefined) return Effect.fail(RouteNotFound)
    context.route = matched.route
    if (!isGetOrHead(request)) return Effect.fail(MethodNotAllowed)
    const endpoint = endpoints.get(matched.route)
    if (endpoint === undefined) return operationalRoutes[matched.route as OperationalPath](request)
    const { cacheKey } = context
    const read = admitAndRead(context, endpoint, matched)
    return Effect.flatMap(
      cacheKey === undefined ? read : responseCache.load(cacheKey, read, isContradiction),
      ({ representation }) => respondIfMemoryAllows(request, representation, context.transport)
    )
  }

  const admitAndRead = (
    context: RequestContext,
    endpoint: Endpoint,
    matched: MatchedRoute
  ): Effect.Effect<CachedResponse, ApiError> =>
    Effect.flatMap(admission.admit(parseBearerToken(context.request.headers.authorization)), (caller) => {
      context.caller = caller
      return Effect.map(endpoint(caller, matched), (body) => ({
        caller,
        route: matched.route,
        representation: representResource(body, caller.workspaceId)
      }))
    })

  const record = (context: RequestContext, { status }: HttpResponse): Effect.Effect<void> => {
    const { request, requestId, startedAt, route, caller } = context
    const milliseconds = performance.now() - startedAt
    return recordRequest({ method: request.method, route, status, milliseconds, requestId, caller })
  }

  return app
})
