import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import {
  type ApiError,
  BadRequest,
  HeadersTooLarge,
  MalformedHeader,
  RequestTimeout
} from "../contract/Errors.ts"
import { type HttpResponse, withCommonHeaders, toErrorResponse } from "./HttpMessage.ts"
import { recordRequest } from "./request/RequestRecord.ts"
import { chooseRequestId, matchRoute } from "./request/RequestHead.ts"

const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_INVALID_HEADER_TOKEN: MalformedHeader,
  HPE_HEADER_OVERFLOW: HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: RequestTimeout
}

/** Converts an error of Node's HTTP server to an API error. */
export const toApiError = ({ code = "" }: NodeJS.ErrnoException): ApiError => parserErrors[code] ?? BadRequest

/**
 * Makes the function that returns the response to a request that is rejected before it reaches the app. `request` is
 * undefined if it could not be parsed. The function logs and counts each rejection.
 */
export const makeReject = Effect.map(Effect.context<never>(), (context) => {
  const run = Effect.runSyncWith(context)
  return (error: ApiError, request?: IncomingMessage): HttpResponse => {
    const requestId = chooseRequestId(request?.headers["x-request-id"] as string | undefined)
    const response = withCommonHeaders(toErrorResponse(error), requestId)
    const method = request?.method
    const route = request?.url === undefined ? undefined : matchRoute(request.url)?.route
    const { status } = response
    run(recordRequest({ method, route, status, milliseconds: 0, requestId, caller: undefined }))
    return response
  }
})
