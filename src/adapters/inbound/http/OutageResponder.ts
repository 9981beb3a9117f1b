import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Admission } from "../../../application/Admission.ts"
import type { CacheEntry } from "../../../application/Freshness.ts"
import type { OutagePolicy } from "../../../application/Outage.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { type ApiKey, hashApiKey, isExpired, type KeyHash, KeyRevoked } from "../../../domain/ApiKey.ts"
import type { ApiError, ErrorTag } from "./contract/Errors.ts"
import type { HttpRequest, HttpResponse } from "./HttpMessage.ts"
import { parseBearerToken } from "./request/Authorization.ts"
import type { RequestContext } from "./RequestContext.ts"
import { toOutageResponse } from "./response/OutageResponse.ts"
import type { CachedResponse, ResponseCache } from "./response/ResponseCache.ts"
import { respondIfMemoryAllows } from "./response/ResponseMemory.ts"

type Respond = Effect.Effect<HttpResponse, ApiError>

/** A response from before the outage, and the key that got it. */
interface Known {
  readonly entry: CacheEntry<CachedResponse>
  readonly key: KeyHash
}

/**
 * The errors that show something of the workspace. Other errors concern one request or one key; `Admission` reports
 * refused keys and workspaces.
 */
const tagsOfWorkspace: ReadonlySet<ErrorTag> = new Set([
  "OwnerMustReset",
  "PromptNotFound",
  "VersionNotFound",
  "ResolvedTooLarge"
])

/** Returns the hash of the key of a request that was admitted before. */
const hashKey = ({ headers }: HttpRequest): KeyHash =>
  hashApiKey(parseBearerToken(headers.authorization) as ApiKey)

/**
 * Makes the function that responds to a request that the cache cannot serve: with the last known response while the
 * database is unreachable, otherwise with `respondFresh`, and with the last known response if the database does not
 * respond. A request without a last known response, or whose key was refused since, gets the fresh response.
 *
 * What fresh responses show of the database decides which known responses are still served, so that no caller receives
 * an older response than before.
 */
export const makeOutageResponder = (
  outage: OutagePolicy,
  admission: Admission["Service"],
  responses: ResponseCache
): ((context: RequestContext, respondFresh: () => Respond) => Respond) => {
  const findKnown = ({ cacheKey, request }: RequestContext): Known | undefined => {
    const entry = responses.findLastKnown(cacheKey)
    if (entry === undefined) return undefined
    const key = hashKey(request)
    return outage.isRefused(key, entry.value.startedAt) ? undefined : { entry, key }
  }

  /**
   * The same checks as for a response from the cache. A request that was already admitted afresh is counted only once.
   */
  const admitKnown = (context: RequestContext, { caller, route }: CachedResponse) => {
    const wasAdmitted = context.caller !== undefined
    context.route = route
    context.caller = caller
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (!wasAdmitted) return admission.admitAgain(caller, now)
      return isExpired(caller.keyExpiresAt, now) ? Effect.fail(KeyRevoked) : Effect.void
    })
  }

  /** Responds with a known response, or with `otherwise` if it must not be served any more. */
  const respondKnown = (context: RequestContext, { entry, key }: Known, otherwise: Respond): Respond =>
    Effect.flatMap(admitKnown(context, entry.value), () => {
      const isRefused = outage.isRefused(key, entry.value.startedAt)
      const ageMs = isRefused ? undefined : outage.findAge(entry)
      if (ageMs === undefined) return otherwise
      outage.recordResponse(ageMs)
      return Effect.map(
        respondIfMemoryAllows(context.request, entry.value.representation, context.hasRoom),
        (response) => toOutageResponse(response, ageMs)
      )
    })

  /** Reports what an error shows, which may be that a known response is out of date. */
  const reportError = ({ cacheKey, caller }: RequestContext, { _tag }: ApiError): void => {
    if (!tagsOfWorkspace.has(_tag)) return
    const entry = responses.findLastKnown(cacheKey)
    if (entry !== undefined) outage.reportChange(entry)
    else if (caller !== undefined) outage.reportRead(caller.workspaceId)
  }

  /** Responds afresh, and reports what the response shows. The response cache compares it with the known one. */
  const respondAndReport = (
    context: RequestContext,
    respondFresh: () => Respond,
    isKnown: boolean
  ): Respond =>
    respondFresh().pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          if (isKnown) outage.reportResponse()
          else if (context.caller !== undefined) outage.reportRead(context.caller.workspaceId)
        })
      ),
      Effect.tapError((error) => Effect.sync(() => reportError(context, error)))
    )

  /** Responds afresh, and with the known response if contact is lost before the database responds. */
  const respondFreshOrKnown = (
    context: RequestContext,
    known: Known,
    respondFresh: () => Respond
  ): Respond => {
    const unavailable = Effect.fail(Unavailable)
    const fresh = respondAndReport(context, respondFresh, true)
    const freshIfRestored = Effect.suspend(() => (outage.hasContact() ? fresh : unavailable))
    return Effect.raceFirst(fresh, Effect.as(outage.begins, undefined)).pipe(
      Effect.catchTag("Unavailable", () =>
        Effect.flatMap(outage.isContactLost(context.startedAt), (isLost) =>
          isLost ? Effect.undefined : unavailable
        )
      ),
      Effect.flatMap((response) =>
        response === undefined ? respondKnown(context, known, freshIfRestored) : Effect.succeed(response)
      )
    )
  }

  return (context, respondFresh) => {
    const known = findKnown(context)
    if (known === undefined) return respondAndReport(context, respondFresh, false)
    if (!outage.isServing()) return respondFreshOrKnown(context, known, respondFresh)
    const otherwise = Effect.suspend(() => respondAndReport(context, respondFresh, true))
    return respondKnown(context, known, otherwise)
  }
}
