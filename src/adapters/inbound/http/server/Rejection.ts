import type { IncomingMessage } from "node:http"
import type * as Effect from "effect/Effect"
import {
  type ApiError,
  BadRequest,
  HeadersTooLarge,
  MalformedHeader,
  RequestTimeout
} from "../../contract/Errors.ts"
import { matchRoute } from "../Endpoints.ts"
import { type HttpResponse, toBytes, toErrorResponse, toHeaderPairs } from "../HttpMessage.ts"
import { chooseRequestId, completeRequest } from "../RequestContext.ts"
import { STATUS_CODES } from "./NodeHttp.ts"

const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_INVALID_HEADER_TOKEN: MalformedHeader,
  HPE_HEADER_OVERFLOW: HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: RequestTimeout
}

/** Converts an error of Node's HTTP server to an API error. */
export const toApiError = ({ code = "" }: NodeJS.ErrnoException): ApiError => parserErrors[code] ?? BadRequest

/**
 * Returns the response to a request that does not reach the app. `request` is undefined if Node could not parse the
 * request.
 */
export const reject = (error: ApiError, request?: IncomingMessage): Effect.Effect<HttpResponse> =>
  completeRequest(
    {
      method: request?.method,
      requestId: chooseRequestId(request?.headers["x-request-id"] as string | undefined),
      startedAt: performance.now(),
      isHeld: false,
      route: request?.url === undefined ? undefined : matchRoute(request.url)?.route,
      caller: undefined
    },
    toErrorResponse(error)
  )

/** Encodes the last response of a connection. */
export const encodeResponse = (response: HttpResponse): Uint8Array => {
  const { status, body } = response
  const headers = [...toHeaderPairs(response), ["date", new Date().toUTCString()], ["connection", "close"]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n`
  return Buffer.concat([Buffer.from(head), toBytes(body)])
}
