import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import type { HttpRequest, Transport } from "../contract/HttpMessage.ts"
import { chooseRequestId } from "./request/RequestHead.ts"
import { toCacheKey } from "./response/ResponseCache.ts"

/**
 * A request and the facts that its log line, metrics and span report. The steps of the app set `route` and `caller` as
 * early as possible, because a step that fails returns only an error.
 */
export interface RequestContext {
  readonly request: HttpRequest
  readonly transport: Transport
  readonly requestId: string
  /** The value of `performance.now()` when the request arrived. */
  readonly startedAt: number
  readonly cacheKey: string | undefined
  /** The pattern of the route. */
  route: string | undefined
  caller: AdmittedCaller | undefined
}

export const makeRequestContext = (request: HttpRequest, transport: Transport): RequestContext => ({
  request,
  transport,
  requestId: chooseRequestId(request.headers["x-request-id"]),
  startedAt: performance.now(),
  cacheKey: toCacheKey(request),
  route: undefined,
  caller: undefined
})
