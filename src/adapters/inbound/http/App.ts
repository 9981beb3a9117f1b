import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Admission, type AdmittedCaller } from "../../../application/Admission.ts"
import { AcceptedKeys, Outage } from "../../../application/cache/Outage.ts"
import { type Cacheable, RevisionedCache } from "../../../application/cache/RevisionedCache.ts"
import { toError } from "../../../application/InternalError.ts"
import { checkIsTraced } from "../../../application/observability/Instrumentation.ts"
import { ReadGate, withRequestDeadline } from "../../../application/Prompts.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { OperationalPath } from "../contract/Api.ts"
import { type ApiError, errors, MethodNotAllowed, RouteNotFound } from "../contract/Errors.ts"
import { sharedMaxAgeSeconds } from "../contract/Headers.ts"
import { Address } from "./Address.ts"
import { type Endpoint, type MatchedRoute, makeEndpoints, matchRoute, splitTarget } from "./Endpoints.ts"
import { makeHeldRequests } from "./HeldRequests.ts"
import {
  type HttpRequest,
  type HttpResponse,
  isGetOrHead,
  isSameRepresentation,
  type Representation,
  representResource,
  respondConditionally,
  toErrorResponse,
  toOutageResponse
} from "./HttpMessage.ts"
import { MountedEndpoint } from "./MountedEndpoint.ts"
import { makeOperationalRoutes } from "./OperationalRoutes.ts"
import {
  claimCount,
  completeRequest,
  makeRequestContext,
  parseBearerToken,
  type RequestContext
} from "./RequestContext.ts"
import { inSpan } from "./Tracing.ts"

/** Responds to a request, and never fails. */
export type App = (request: HttpRequest) => Effect.Effect<HttpResponse>

/** A 200 response, the caller for whom the app made the response, and the pattern of the route. */
interface CachedResponse {
  readonly caller: AdmittedCaller
  readonly route: string
  readonly representation: Representation
}

/** The limits of the response cache. Sizes are in bytes. */
export const cacheLimits = {
  maxSize: 32 * 1024 * 1024,
  maxValueSize: 1024 * 1024,
  maxAgeMs: sharedMaxAgeSeconds * 1_000
}

/** The approximate size of a cached response without its body, in bytes. */
const entryBytes = 1024

const toCacheable = (response: CachedResponse): Cacheable<CachedResponse> => ({
  workspace: response.caller.workspaceId,
  value: response,
  size: response.representation.full.body.length + entryBytes
})

/** Returns true if an error is about the content of the workspace. Such an error contradicts a cached 200. */
const isContradiction = ({ _tag }: ApiError): boolean => errors[_tag].subject === "workspace"

/** Converts every failure to a response. An unexpected failure becomes the error that `toError` returns. */
const respondToFailures = (
  response: Effect.Effect<HttpResponse, ApiError>,
  requestId: string
): Effect.Effect<HttpResponse> =>
  Effect.catchCause(response, (cause) => Effect.map(toError(cause, requestId), toErrorResponse))

/**
 * Makes the app, which does not depend on a transport. The functions below are in the order in which a request passes
 * through them.
 *
 * @param hasRoom returns false if the body of a response does not fit into the memory for unsent bodies; the app then
 * responds 503
 */
export const makeApp = Effect.fnUntraced(function* (
  hasRoom: (response: HttpResponse) => boolean = () => true
) {
  const mounted = yield* MountedEndpoint
  const admission = yield* Admission
  const endpoints = yield* makeEndpoints
  const gate = yield* ReadGate
  const operationalRoutes = yield* makeOperationalRoutes
  const feed = yield* ChangeFeed
  /**
   * Caches whole responses by a hash of the `Authorization` header and the request target. A request passes every check
   * before its response is cached. While nothing in the workspace changes, a later request can fail only the two checks
   * that depend on the time: the expiry of the key and the rate limits.
   */
  const responseCache = new RevisionedCache<CachedResponse>(
    feed,
    cacheLimits,
    (a, b) => isSameRepresentation(a.representation, b.representation),
    "responses"
  )
  const acceptedKeys = yield* AcceptedKeys
  const outage = yield* Outage
  const isTraced = yield* checkIsTraced
  const { basePath } = yield* Address

  const app: App = (request) =>
    Effect.suspend(() => {
      const context = makeRequestContext(request)
      // `mounted.respond` and `respond` set `context.route` immediately, so the span below has the name of the route.
      const response =
        mounted !== undefined && splitTarget(request.target).path === mounted.path
          ? mounted.respond(context)
          : respondToFailures(
              context.waitSeconds === undefined ? respond(context) : respondOrHold(context, respond(context)),
              context.requestId
            )
      const traced = isTraced ? inSpan(request, context.route, response) : response
      return Effect.flatMap(traced, (response) =>
        hasRoom(response) ? completeRequest(context, response) : respondWithoutRoom(context)
      )
    })

  const respond = (context: RequestContext): Effect.Effect<HttpResponse, ApiError> => {
    const { cacheKey } = context
    const cached = cacheKey === undefined ? undefined : responseCache.get(cacheKey)
    return cached === undefined ? respondFreshOrKnown(context) : respondFromCache(context, cached)
  }

  /** Makes a fresh response. In an outage of the database, responds with the last known response instead. */
  const respondFreshOrKnown = (context: RequestContext): Effect.Effect<HttpResponse, ApiError> => {
    const { cacheKey } = context
    const fresh = withRequestDeadline(respondFresh(context))
    return cacheKey === undefined || responseCache.findLastKnown(cacheKey) === undefined
      ? fresh
      : withRequestDeadline(outage.readOrServeKnown(fresh, respondKnown(context, cacheKey)))
  }

  /**
   * Responds from the cache. Checks only the key's expiry and the rate limits, because all other checks passed before
   * the response was cached.
   */
  const respondFromCache = (context: RequestContext, cached: CachedResponse) => {
    const { caller, route, representation } = cached
    context.route = route
    context.caller = caller
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Effect.map(admission.admitAgain(caller, now, claimCount(context)), () =>
        respondConditionally(context.request, representation)
      )
    )
  }

  /** Returns the known response. Checks the key's expiry and, unless the request already counted, the rate limits. */
  const respondKnown = Effect.fnUntraced(function* (
    context: RequestContext,
    cacheKey: string
  ): Effect.fn.Return<HttpResponse, ApiError> {
    const known = responseCache.findLastKnown(cacheKey)
    if (known === undefined) return yield* Effect.fail(Unavailable)
    const { caller, route, representation } = known
    const now = yield* Clock.currentTimeMillis
    context.route = route
    context.caller = caller
    yield* admission.admitAgain(caller, now, claimCount(context))
    const ageMs = outage.findAge()
    const isKnown = acceptedKeys.has(caller.keyHash, now) && responseCache.findLastKnown(cacheKey) === known
    if (ageMs === undefined || !isKnown) return yield* Effect.fail(Unavailable)
    yield* outage.recordResponse(ageMs)
    return toOutageResponse(respondConditionally(context.request, representation), ageMs)
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
    return Effect.map(
      cacheKey === undefined ? read : responseCache.load(cacheKey, read, toCacheable, isContradiction),
      ({ representation }) => respondConditionally(request, representation)
    )
  }

  const admitAndRead = (
    context: RequestContext,
    endpoint: Endpoint,
    matched: MatchedRoute
  ): Effect.Effect<CachedResponse, ApiError> => {
    const token = parseBearerToken(context.request.headers.authorization)
    // A held request has already counted, and so has a request that `respondKnown` counted during the key lookup.
    const mustCount = () => claimCount(context)
    return Effect.flatMap(admission.admit(token, mustCount), (caller) => {
      context.caller = caller
      const read = Effect.suspend((): Effect.Effect<CachedResponse, ApiError> => {
        // Another request may have cached the response while this request waited for its permit.
        const cached = context.cacheKey === undefined ? undefined : responseCache.peek(context.cacheKey)
        return cached !== undefined
          ? Effect.succeed(cached)
          : Effect.map(endpoint(caller, matched), (body) => ({
              caller,
              route: matched.route,
              representation: representResource(body, caller.workspaceId)
            }))
      })
      return gate.withPermit(caller.workspaceId, read)
    })
  }

  const respondWithoutRoom = (context: RequestContext): Effect.Effect<HttpResponse> =>
    Effect.andThen(
      Effect.logWarning("Clients read their responses too slowly; large response replaced by 503"),
      completeRequest(context, toErrorResponse(Unavailable))
    )

  const respondOrHold = yield* makeHeldRequests(respondFreshOrKnown)
  return app
})
