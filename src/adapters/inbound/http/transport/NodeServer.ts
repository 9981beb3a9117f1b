import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { makeApp } from "../App.ts"
import { BadRequest, ExpectationFailed, RouteNotFound } from "../../contract/Errors.ts"
import { MountedEndpoint } from "../MountedEndpoint.ts"
import { TrackedResponse } from "./Connection.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import { ConnectionTracker } from "./ConnectionTracker.ts"
import { createServer } from "./NodeHttp.ts"
import { allowHalfOpenConnections } from "./NodeInternals.ts"
import { Exchange } from "./Exchange.ts"
import { makeRejections } from "./Rejections.ts"
import { BodyReader } from "../request/RequestBody.ts"
import { makeResponseBatcher } from "./ResponseWriter.ts"

/**
 * Returns true if a request has exactly one `Host` header, and no transfer coding other than `chunked`. Only an
 * HTTP/1.0 request is also accepted without a `Host` header. The server joins duplicate headers with commas, so a comma
 * in `host` means several headers.
 */
const hasAcceptableHead = ({ headers, httpVersion }: IncomingMessage): boolean => {
  const { host, "transfer-encoding": framing } = headers
  return (
    (host === undefined ? httpVersion === "1.0" : !host.includes(",")) &&
    (framing === undefined || framing.toLowerCase() === "chunked")
  )
}

/** Makes a server for the app, and the tracker that owns its connections. The server does not listen yet. */
export const makeNodeServer = (limits: ConnectionLimits) =>
  Effect.gen(function* () {
    const tracker: ConnectionTracker = new ConnectionTracker(limits, (response) => startRequest(response))
    const { rejectRequest, rejectConnection, rejectParserError } = yield* makeRejections(tracker)
    const app = yield* makeApp(yield* MountedEndpoint)
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const bodies = new BodyReader()
    const enqueueResponse = makeResponseBatcher()

    const startRequest = (response: TrackedResponse): void => {
      const { req: request } = response
      if (response.hasUnmetExpectation) rejectRequest(response, ExpectationFailed)
      else if (!hasAcceptableHead(request)) rejectRequest(response, BadRequest)
      else respond(request, response)
    }

    /** Runs the app. A disconnect does not cancel the request: it completes, and is logged and counted. */
    const respond = (request: IncomingMessage, response: TrackedResponse): void => {
      // Node always sets `method` and `url` on a request that a server receives.
      const { method = "", url: target = "", headers } = request
      const exchange = new Exchange(response, tracker, bodies)
      const responding = app(
        { method, target, headers: headers as Record<string, string | undefined> },
        exchange
      )
      fork(responding).addObserver((exit) => {
        if (Exit.isSuccess(exit)) exchange.respond(exit.value, enqueueResponse)
        else exchange.abort()
      })
    }

    const server = createServer(
      {
        ServerResponse: TrackedResponse,
        headersTimeout: limits.headersTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveTimeoutMs,
        connectionsCheckingInterval: limits.sweepIntervalMs,
        maxHeaderSize: limits.maxHeadBytes,
        requireHostHeader: false,
        // Node would otherwise use only the first of several Authorization or Host headers.
        joinDuplicateHeaders: true
      },
      (request, response) => tracker.trackRequest(request, response)
    )
    allowHalfOpenConnections(server)
    server.on("connection", (socket: Socket) => tracker.trackConnection(socket))
    server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
      response.hasUnmetExpectation = true
      tracker.trackRequest(request, response)
    })
    server.on("connect", ({ method }: IncomingMessage, socket) =>
      rejectConnection(socket as Socket, RouteNotFound, method)
    )
    server.on("clientError", (error, socket) => rejectParserError(socket as Socket, error))
    return { server, tracker }
  })
