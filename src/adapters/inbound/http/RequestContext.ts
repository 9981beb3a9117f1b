import { hash } from "node:crypto"
import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import { type HttpRequest, isGetOrHead } from "./HttpMessage.ts"
import { findWaitSeconds } from "./request/Prefer.ts"
import { chooseRequestId } from "./request/RequestHead.ts"

/**
 * A request and the facts that its log line, metrics and span report. The steps of the app set `route` and `caller` as
 * early as possible, because a step that fails returns only an error.
 */
export interface RequestContext {
  readonly request: HttpRequest
  readonly requestId: string
  /** The value of `performance.now()` when the request arrived. */
  readonly startedAt: number
  readonly cacheKey: string | undefined
  /** How long the request may wait for a change, in seconds; `undefined` if it does not wait. */
  readonly waitSeconds: number | undefined
  /** True once the request is held. Making its response again does not count against the rate limits. */
  isHeld: boolean
  /** The pattern of the route. */
  route: string | undefined
  caller: AdmittedCaller | undefined
}

/**
 * Returns the cache key of a request: a hash of the exact bytes of its `Authorization` header and its target. Returns
 * `undefined` for a request without `Authorization`, or with a method other than GET and HEAD. Such requests are never
 * served from the cache.
 */
const toCacheKey = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

export const makeRequestContext = (request: HttpRequest): RequestContext => ({
  request,
  requestId: chooseRequestId(request.headers["x-request-id"]),
  startedAt: performance.now(),
  cacheKey: toCacheKey(request),
  waitSeconds: findWaitSeconds(request),
  isHeld: false,
  route: undefined,
  caller: undefined
})
