import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import type { HasRoom, HttpRequest } from "../contract/HttpMessage.ts"
import { chooseRequestId } from "./request/RequestId.ts"
import { toCacheKey } from "./response/ResponseCache.ts"

/**
 * A request and the facts that its log line, metrics and span report. The steps of the app fill in `route` and
 * `caller` as soon as they are known, because a failing step returns only its error.
 */
export interface RequestContext {
  readonly request: HttpRequest
  readonly hasRoom: HasRoom
  readonly requestId: string
  /** The time by `performance.now()`, in milliseconds. */
  readonly startedAt: number
  readonly cacheKey: string | undefined
  /** The pattern of the route. */
  route: string | undefined
  caller: AdmittedCaller | undefined
}

/** Makes the context of a request that has just arrived. */
export const makeRequestContext = (request: HttpRequest, hasRoom: HasRoom): RequestContext => ({
  request,
  hasRoom,
  requestId: chooseRequestId(request.headers["x-request-id"]),
  startedAt: performance.now(),
  cacheKey: toCacheKey(request),
  route: undefined,
  caller: undefined
})
