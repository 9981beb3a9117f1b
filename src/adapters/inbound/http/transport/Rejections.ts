import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import {
  type ApiError,
  BadRequest,
  HeadersTooLarge,
  MalformedHeader,
  RequestTimeout
} from "../../contract/Errors.ts"
import { recordRequest } from "../observability/CompletedRequest.ts"
import { matchRoute } from "../request/RequestHead.ts"
import { makeRejection } from "../response/ErrorResponse.ts"
import type { TrackedResponse } from "./Connection.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"
import { writeResponse, writeToSocket } from "./ResponseWriter.ts"

/** A request that was rejected before the app ran. Fields that were not parsed are undefined. */
interface RejectedRequest {
  readonly method?: string | undefined
  readonly target?: string | undefined
  readonly status: number
  readonly requestId: string
}

/**
 * The codes of Node's errors that have their own response. The response to any other error of the parser is a plain
 * 400.
 */
const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_INVALID_HEADER_TOKEN: MalformedHeader,
  HPE_HEADER_OVERFLOW: HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: RequestTimeout
}

/** Makes the functions that respond to requests that never reach the app. Each rejection is logged and counted. */
export const makeRejections = (tracker: ConnectionTracker) =>
  Effect.map(Effect.context<never>(), (context) => {
    const run = Effect.runSyncWith(context)

    const record = ({ method, target, status, requestId }: RejectedRequest): void => {
      const route = target === undefined ? undefined : matchRoute(target)?.route
      run(recordRequest({ method, route, status, milliseconds: 0, requestId, caller: undefined }))
    }

    /** Rejects a parsed request. The connection closes after the response. */
    const rejectRequest = (response: TrackedResponse, error: ApiError): void => {
      const { method, url: target, headers } = response.req
      const rejection = makeRejection(error, headers["x-request-id"] as string | undefined)
      tracker.recordResponse(response, rejection.response)
      response.shouldKeepAlive = false
      writeResponse(response, rejection.response)
      record({ method, target, status: rejection.response.status, requestId: rejection.requestId })
    }

    /** Writes a rejection on a socket without a parsed request. Returns false if the socket is no longer writable. */
    const rejectSocket = (
      socket: Socket,
      error: ApiError,
      method: string | undefined,
      onSent: () => void
    ): boolean => {
      if (!socket.writable) return false
      const { requestId, response } = makeRejection(error)
      writeToSocket(socket, response, onSent)
      record({ method, status: response.status, requestId })
      return true
    }

    /** Rejects a connection that Node no longer parses, such as one with a CONNECT request. */
    const rejectConnection = (socket: Socket, error: ApiError, method: string | undefined): void =>
      tracker.rejectWhenIdle(socket, (onSent) => rejectSocket(socket, error, method, onSent))

    /**
     * Rejects a connection on which Node's parser failed. If the error is in the body of an earlier request, destroys
     * the connection without a response.
     */
    const rejectParserError = (socket: Socket, { code = "" }: NodeJS.ErrnoException): void => {
      const error = parserErrors[code] ?? BadRequest
      // If the server has paused reading, the client is not responsible for a late request.
      if (error === RequestTimeout && socket.isPaused()) return
      tracker.rejectWhenIdle(
        socket,
        (onSent) => !tracker.hasUnreadBody(socket) && rejectSocket(socket, error, undefined, onSent)
      )
    }

    return { rejectRequest, rejectConnection, rejectParserError }
  })
