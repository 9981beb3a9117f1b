import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ServerResponse, IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import {
  type HttpResponse,
  type BodyError,
  type BodyLimits,
  encodeResponse,
  hasAcceptableHead,
  hasUnreadBody
} from "../HttpMessage.ts"
import { connectionLimits, type ConnectionLimits } from "./ConnectionLimits.ts"
import { type ApiError, BadRequest, ExpectationFailed, RouteNotFound } from "../../contract/Errors.ts"
import { makeApp } from "../App.ts"
import { MountedEndpoint } from "../MountedEndpoint.ts"
import { createServer } from "../NodeHttp.ts"
import { BodyReader } from "../RequestBody.ts"
import { reject, toApiError } from "../Rejection.ts"
import { UnsentBytes } from "../UnsentBytes.ts"
import { Connections } from "./Connections.ts"

/**
 * Sends the last bytes of a connection and closes the server's half of the connection. Closes the whole connection only
 * after `lingerMs`: closing a socket with unread bytes resets the connection, so the client might lose the last
 * response.
 */
const closeAfter = (socket: Duplex, lastBytes: Uint8Array | string): void => {
  socket.end(lastBytes)
  setTimeout(() => socket.destroy(), connectionLimits.lingerMs).unref()
}

/**
 * Writes a response, without its body if the request is a HEAD. The connection ends after a response to a request with
 * an unread body. It also ends after a request with an Upgrade header, because Node parses nothing behind this header.
 */
const writeResponse = (response: ServerResponse, content: HttpResponse, closes: boolean): void => {
  const { req: request } = response
  const { status, headers, body } = content
  const isUnread = hasUnreadBody(request)
  const isLast = closes || isUnread || request.headers.upgrade !== undefined
  response.writeHead(status, isLast ? [...headers, "connection", "close"] : (headers as Array<string>))
  const sentBody = request.method === "HEAD" ? "" : body
  if (isUnread) {
    // `end` would make Node parse the rest of the request's body.
    request.pause()
    request.socket.pause()
    const writeAndClose = (): void => {
      response.flushHeaders()
      response.write(sentBody, "latin1", () => closeAfter(request.socket, ""))
    }
    // Node calls back at once for a response without a body, even while earlier responses of the connection are unsent.
    if (response.socket === null) response.once("socket", writeAndClose)
    else writeAndClose()
  } else response.end(sentBody, "latin1")
}

/**
 * Makes a function that defers response writes to the end of the event-loop turn and issues them back to back. Socket
 * writes dominate the cost of a cache hit; batching makes them about a third cheaper.
 *
 * @param isDraining returns true if each connection must close after its response
 */
const makeResponseBatcher = (isDraining: () => boolean) => {
  const batch: Array<readonly [ServerResponse, HttpResponse]> = []
  const flush = (): void => {
    for (const [response, content] of batch.splice(0))
      if (!response.destroyed) writeResponse(response, content, isDraining())
  }
  return (response: ServerResponse, content: HttpResponse): void => {
    if (batch.push([response, content]) === 1) setImmediate(flush)
  }
}

/** Makes a server that runs the app and tracks its connections. The server does not listen yet. */
export const makeNodeServer = (limits: ConnectionLimits) =>
  Effect.gen(function* () {
    const unsent = new UnsentBytes(limits.maxUnsentBytes)
    const connections = new Connections(unsent)
    const app = yield* makeApp(yield* MountedEndpoint, (response) => unsent.hasRoom(response))
    const context = yield* Effect.context<never>()
    const fork = Effect.runForkWith(context)
    const runSync = Effect.runSyncWith(context)
    const bodies = new BodyReader()
    const enqueueResponse = makeResponseBatcher(() => connections.isDraining)

    const respond = (response: ServerResponse, content: HttpResponse): void => {
      connections.countUnsent(response, content)
      enqueueResponse(response, content)
    }

    /** Runs the app. A disconnect does not cancel the request: it completes, and is logged and counted. */
    const runApp = (request: IncomingMessage, response: ServerResponse): void => {
      // Node always sets `method` and `url` on a request that a server receives.
      const { method = "", url: target = "" } = request
      const headers = request.headers as Record<string, string | undefined>
      let releaseBody = (): void => {}
      const readBody = (limits: BodyLimits) =>
        Effect.callback<Uint8Array, BodyError>((resume) => {
          request.socket.resume()
          releaseBody = bodies.read(request, limits, resume)
          connections.releaseBodyAtEnd(response, releaseBody)
        })
      const startWait = (release: () => void) => connections.startWait(response, release)
      fork(app({ method, target, headers, readBody, startWait })).addObserver((exit) => {
        releaseBody()
        if (Exit.isSuccess(exit)) respond(response, exit.value)
        else request.socket.destroy()
      })
    }

    const handleRequest = (request: IncomingMessage, response: ServerResponse, error?: ApiError): void => {
      if (!connections.begin(response)) return
      // Node's parser runs JavaScript for each chunk of a body. Pausing the socket keeps the parser from reading a body
      // that no endpoint reads.
      if (hasUnreadBody(request)) request.socket.pause()
      const problem = error ?? (hasAcceptableHead(request) ? undefined : BadRequest)
      if (problem === undefined) runApp(request, response)
      else respond(response, runSync(reject(problem, request)))
    }

    /**
     * Sends a rejection on a connection on which Node parses no further request, and closes the connection. If a
     * response is in flight, only closes the connection, because the rejection could end up in the middle of this
     * response.
     */
    const rejectConnection = (socket: Duplex, error: ApiError, request?: IncomingMessage): void => {
      connections.releaseBodies(socket)
      const responses = connections.findResponses(socket)
      // If the body of a request is invalid, the response to this request closes the connection. While a connection is
      // closing, the parser may report further errors.
      if (socket.writableEnded || responses.some(({ req }) => hasUnreadBody(req))) return
      if (responses.length > 0) socket.destroy()
      else if (socket.writable) closeAfter(socket, encodeResponse(runSync(reject(error, request))))
    }

    const server = createServer({
      ...limits,
      requireHostHeader: false,
      // Node would otherwise use only the first of several Authorization or Host headers.
      joinDuplicateHeaders: true
    })
    server.timeout = limits.timeout
    server.maxConnections = limits.maxConnections
    server.on("connection", (socket) => connections.add(socket))
    server.on("request", (request, response) => handleRequest(request, response))
    server.on("checkExpectation", (request, response) => handleRequest(request, response, ExpectationFailed))
    server.on("connect", (request, socket) => rejectConnection(socket, RouteNotFound, request))
    server.on("clientError", (error, socket) => rejectConnection(socket, toApiError(error)))
    return { server, connections }
  })
