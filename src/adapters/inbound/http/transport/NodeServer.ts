import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ServerResponse, IncomingMessage } from "node:http"
import type { Duplex } from "node:stream"
import type { HttpRequest, HttpResponse } from "../HttpMessage.ts"
import { encodeResponse, hasAcceptableHead, hasUnreadBody } from "../HttpMessage.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import { type ApiError, BadRequest, ExpectationFailed, RouteNotFound } from "../../contract/Errors.ts"
import { makeApp } from "../App.ts"
import { MountedEndpoint } from "../MountedEndpoint.ts"
import { createServer } from "../NodeHttp.ts"
import { BodyReader } from "../RequestBody.ts"
import { reject, toApiError } from "../Rejection.ts"
import { UnsentBytes } from "../UnsentBytes.ts"
import { Connections } from "./Connections.ts"

/**
 * Writes a response, without its body for a HEAD request. The connection ends after the response if the request has an
 * unread body or an Upgrade header. Node parses nothing behind an Upgrade header.
 */
const writeResponse = (response: ServerResponse, content: HttpResponse, connections: Connections): void => {
  const { req: request } = response
  const { status, headers, body } = content
  const isUnread = hasUnreadBody(request)
  const isLast = connections.isDraining || isUnread || request.headers.upgrade !== undefined
  response.writeHead(status, isLast ? [...headers, "connection", "close"] : (headers as Array<string>))
  const sentBody = request.method === "HEAD" ? "" : body
  if (isUnread) {
    // `end` would make Node parse the rest of the request's body.
    request.pause()
    request.socket.pause()
    const writeAndClose = (): void => {
      response.flushHeaders()
      response.write(sentBody, "latin1", () => connections.closeAfter(request.socket, ""))
    }
    // Node calls back at once for a response without a body, even while earlier responses of the connection are unsent.
    if (response.socket === null) response.once("socket", writeAndClose)
    else writeAndClose()
  } else response.end(sentBody, "latin1")
}

/** Makes a server that runs the app and tracks its connections. The server does not listen yet. */
export const makeNodeServer = (limits: ConnectionLimits) =>
  Effect.gen(function* () {
    const unsent = new UnsentBytes(limits.maxUnsentBytes)
    const connections = new Connections(limits)
    const app = yield* makeApp(yield* MountedEndpoint, (response) => unsent.hasRoom(response))
    const context = yield* Effect.context<never>()
    const fork = Effect.runForkWith(context)
    const runSync = Effect.runSyncWith(context)
    const bodies = new BodyReader()
    const batch: Array<readonly [ServerResponse, HttpResponse]> = []
    const writeBatch = (): void => {
      for (const [response, content] of batch.splice(0))
        if (!response.destroyed) writeResponse(response, content, connections)
    }

    /**
     * Writes a response at the end of this event-loop turn, back to back with the other responses of the turn. Socket
     * writes dominate the cost of a cache hit; batching makes them about a third cheaper.
     */
    const respond = (response: ServerResponse, content: HttpResponse): void => {
      unsent.add(content)
      connections.hold(response, () => unsent.remove(content))
      if (batch.push([response, content]) === 1) setImmediate(writeBatch)
    }

    /** Runs the app. A disconnect does not cancel the request: it completes, and is logged and counted. */
    const runApp = (request: IncomingMessage, response: ServerResponse): void => {
      // Node always sets `method` and `url` on a request that a server receives.
      const { method = "", url: target = "" } = request
      const headers = request.headers as Record<string, string | undefined>
      const readBody: HttpRequest["readBody"] = (limits) =>
        Effect.callback((resume) => {
          request.socket.resume()
          connections.hold(response, bodies.read(request, limits, resume))
        })
      const startWait = (release: () => void) => connections.startWait(response, release)
      fork(app({ method, target, headers, readBody, startWait })).addObserver((exit) => {
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
     * Sends a rejection on a connection on which Node parses no further request, and closes the connection. If responses
     * are in flight, only closes the connection: after the last response if a body is unread, otherwise immediately.
     */
    const rejectConnection = (socket: Duplex, error: ApiError, request?: IncomingMessage): void => {
      // While a connection is closing, the parser may report further errors.
      if (!socket.writable) return
      const responses = connections.findResponses(socket)
      const last = responses.at(-1)
      if (last === undefined) connections.closeAfter(socket, encodeResponse(runSync(reject(error, request))))
      else if (!responses.some(({ req }) => hasUnreadBody(req))) socket.destroy()
      // The body is invalid, so `BodyReader` must not wait for the rest of it.
      else if (!last.req.complete) last.req.emit("close")
      else if (!last.headersSent) last.setHeader("connection", "close")
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
