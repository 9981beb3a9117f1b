import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Admission } from "../../../application/access/Admission.ts"
import type { Outage } from "../../../application/freshness/Outage.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { isExpired, KeyRevoked } from "../../../domain/ApiKey.ts"
import { type ApiError, errors } from "../contract/Errors.ts"
import type { HttpResponse } from "../contract/HttpMessage.ts"
import type { RequestContext } from "./RequestContext.ts"
import type { ResponseCache } from "./response/ResponseCache.ts"
import { respondIfMemoryAllows } from "./response/Representation.ts"

type Respond = Effect.Effect<HttpResponse, ApiError>

/**
 * The value of the header `Cache-Status` during an outage (RFC 9211): the name of this service, and the reason why the
 * response comes from its cache.
 */
export const outageCacheStatus = "prompt-retrieval; hit; detail=database-unavailable"

/**
 * The maximum time from the last contact to the end of a read that started before contact was lost, in milliseconds. If
 * a read without a known response ends later, its result may be newer than the known responses of its workspace.
 */
const maxLateReadMs = 2_000

/**
 * Converts a cached 200 or 304 to the response during an outage of the database. Other caches must not store this
 * response, because they would serve it for longer than this service may. The response keeps its ETag, so that callers
 * can still make conditional requests.
 *
 * @param ageMs the time since the response was last known to be current, in milliseconds; the header `Age` has this
 * time in seconds, rounded up
 */
const toOutageResponse = (response: HttpResponse, ageMs: number): HttpResponse => {
  const headers = [...response.headers]
  headers[headers.indexOf("cache-control") + 1] = "no-store"
  headers.push("age", String(Math.ceil(ageMs / 1_000)), "cache-status", outageCacheStatus)
  return { ...response, headers }
}

/**
 * Makes the function that responds to requests that the cache cannot serve. The function runs `respondFresh`. If the
 * database does not respond, the function returns the known response: the response that was current at the last
 * contact. If a fresh response contradicts known responses, all known responses of the workspace are deleted, so that
 * no caller receives an older response than it has already received.
 */
export const makeOutageResponder = (
  outage: Outage["Service"],
  admission: Admission["Service"],
  responses: ResponseCache
): ((context: RequestContext, respondFresh: () => Respond) => Respond) => {
  /**
   * Invalidates the known responses of the workspace if the result of a read contradicts them or may be newer.
   * `isChange` is true if the result is an error about the workspace. `ResponseCache` itself compares successful
   * responses with known responses.
   */
  const reportRead = (context: RequestContext, isChange: boolean): void => {
    const workspace = context.caller?.workspaceId
    if (workspace === undefined) return
    const isKnown = responses.findLastKnown(context.cacheKey) !== undefined
    // If this request has no known response, the result of the read may be newer than all known responses.
    if (isKnown ? isChange : (outage.findAge() ?? 0) >= maxLateReadMs) outage.invalidate(workspace)
  }

  /**
   * Responds with the known response. Checks the expiry of the key and the rate limits, as for a cached response. Does
   * not count a request that was already admitted. If the known response may no longer be served, runs `otherwise`,
   * which admits the request from the start and so counts it again.
   */
  const respondKnown = (context: RequestContext, otherwise: Respond): Respond =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const known = responses.findLastKnown(context.cacheKey)
      if (known === undefined) return Effect.fail(Unavailable)
      const { caller, route, representation } = known.value
      const isCounted = context.caller !== undefined
      context.route = route
      context.caller = caller
      const admit: Effect.Effect<void, ApiError> = isCounted
        ? isExpired(caller.keyExpiresAt, now)
          ? Effect.fail(KeyRevoked)
          : Effect.void
        : admission.admitAgain(caller, now)
      return Effect.flatMap(admit, () => {
        const ageMs = outage.findAge()
        if (ageMs === undefined || responses.findLastKnown(context.cacheKey) !== known) return otherwise
        outage.recordResponse(ageMs)
        return Effect.map(
          respondIfMemoryAllows(context.request, representation, context.transport),
          (response) => toOutageResponse(response, ageMs)
        )
      })
    })

  return (context, respondFresh) => {
    const fresh = respondFresh().pipe(
      Effect.tap(() => Effect.sync(() => reportRead(context, false))),
      Effect.tapError(({ _tag }) =>
        Effect.sync(() => {
          if (errors[_tag].subject === "workspace") reportRead(context, true)
        })
      )
    )
    return responses.findLastKnown(context.cacheKey) === undefined
      ? fresh
      : outage.orKnown(fresh, respondKnown(context, fresh))
  }
}
