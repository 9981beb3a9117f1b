import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type ApiError, BadRequest, ExpectationFailed, RouteNotFound } from "../../contract/Errors.ts"
import { makeApp } from "../App.ts"
import { type Body, type HttpRequest, type HttpResponse, WorkspaceShares } from "../HttpMessage.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import { createServer } from "./NodeHttp.ts"
import { encodeResponse, reject, toApiError } from "./Rejection.ts"
import { BodyReader } from "./RequestBody.ts"

/**
 * Returns true if a request has exactly one `Host` header, and no transfer coding other than `chunked`. An HTTP/1.0
 * request may also have no `Host` header. The server joins duplicate headers with commas, so a comma in `host` means
 * several headers.
 */
const hasAcceptableHead = ({ headers, httpVersion }: IncomingMessage): boolean => {
  const { host, "transfer-encoding": framing } = headers
  return (
    (host === undefined ? httpVersion === "1.0" : !host.includes(",")) &&
    (framing === undefined || framing.toLowerCase() === "chunked")
  )
}

/** Returns true if the server has not read the body of a request to its end. */
const hasUnreadBody = ({ headers, readableEnded }: IncomingMessage): boolean =>
  (headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0") && !readableEnded

const doNothing = (): void => {}

/** An in-flight response. */
interface InFlight {
  /** Releases the memory that the response holds: first the body of its request, later the response's own content. */
  releaseMemory: () => void
  /** Ends the response's wait for a change, if the response waits. */
  releaseWait: () => void
}

const releaseAll = ({ releaseMemory, releaseWait }: InFlight): void => {
  releaseWait()
  releaseMemory()
}

/** The open connections, and their in-flight responses in the order of the requests. */
export class Connections {
  /** True once the server drains. Each connection then closes after its next response. */
  isDraining = false
  readonly #limits: ConnectionLimits
  readonly #connections = new Map<Duplex, Map<ServerResponse, InFlight>>()
  #areWaitsAllowed = true

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Tracks a connection until it closes. */
  add(socket: Socket): void {
    const responses = new Map<ServerResponse, InFlight>()
    this.#connections.set(socket, responses)
    // Node removes its error listener before it emits `connect`. Without a listener, an error would end the process.
    socket.on("error", doNothing)
    socket.once("close", () => {
      this.#connections.delete(socket)
      // Some versions of Node emit `close` only for the first in-flight response, not for the responses behind it.
      for (const inFlight of responses.values()) releaseAll(inFlight)
      responses.clear()
    })
  }

  /**
   * Tracks the response to a request that has arrived. Returns false if the request must not run, because its
   * connection is closed or closing. Destroys a connection that already has `maxPipelined` in-flight responses.
   */
  begin(response: ServerResponse): boolean {
    const { socket } = response.req
    const responses = this.#connections.get(socket)
    if (responses === undefined) return false
    if (responses.size >= this.#limits.maxPipelined) socket.destroy()
    if (!socket.writable) return false
    for (const { releaseWait } of responses.values()) releaseWait()
    const inFlight: InFlight = { releaseMemory: doNothing, releaseWait: doNothing }
    responses.set(response, inFlight)
    response.on("close", () => {
      if (responses.delete(response)) releaseAll(inFlight)
    })
    return true
  }

  /** Calls `release` when the response holds other memory or is sent, or when the connection closes. */
  hold(response: ServerResponse, release: () => void): void {
    const inFlight = this.#connections.get(response.req.socket)?.get(response)
    inFlight?.releaseMemory()
    if (inFlight === undefined) release()
    else inFlight.releaseMemory = release
  }

  /** Returns the in-flight responses of a connection. */
  findResponses(socket: Duplex): ReadonlyArray<ServerResponse> {
    return Array.from(this.#connections.get(socket)?.keys() ?? [])
  }

  /**
   * Implements `startWait` of `HttpRequest`. Calls `release` when another request arrives on the connection, when the
   * connection closes, and when `endWaits` is called.
   */
  startWait(response: ServerResponse, release: () => void): (() => void) | undefined {
    const inFlight = this.#connections.get(response.req.socket)?.get(response)
    const isLast = this.findResponses(response.req.socket).at(-1) === response
    if (!inFlight || !isLast || !this.#areWaitsAllowed || hasUnreadBody(response.req)) return undefined
    inFlight.releaseWait = release
    // Node destroys an inactive connection unless the response that is being sent has a listener for `timeout`.
    response.on("timeout", doNothing)
    return () => {
      inFlight.releaseWait = doNothing
      response.off("timeout", doNothing)
    }
  }

  /** Ends all waits. No response may wait from now on. */
  endWaits(): void {
    this.#areWaitsAllowed = false
    for (const responses of this.#connections.values())
      for (const { releaseWait } of responses.values()) releaseWait()
  }

  /**
   * Sends the last bytes of a connection, and closes the connection after `lingerMs`. Closing a socket with unread
   * bytes at once would reset the connection, and the client might lose the last response.
   */
  closeAfter(socket: Duplex, lastBytes: Uint8Array | string): void {
    socket.end(lastBytes)
    setTimeout(() => socket.destroy(), this.#limits.lingerMs).unref()
  }

  destroyIdle(): void {
    for (const [socket, responses] of this.#connections) if (responses.size === 0) socket.destroy()
  }
}

/** The server always sends a response whose body has at most this many bytes. */
const smallBodyBytes = 64 * 1024

/**
 * Counts the bytes of response bodies that clients have not received. A buffer that several responses share counts
 * once.
 */
class UnsentBytes {
  readonly #shares: WorkspaceShares
  /** Maps each buffer to the number of unsent responses that share the buffer. */
  readonly #users = new Map<Body, number>()

  constructor(maxBytes: number) {
    this.#shares = new WorkspaceShares(maxBytes)
  }

  /** Returns true if the server may send a response. There is always room for a small body. */
  hasRoom({ body, workspace }: HttpResponse): boolean {
    const { length } = body
    return length <= smallBodyBytes || this.#users.has(body) || this.#shares.hasRoom(workspace, length)
  }

  /** Counts the body of a response until the caller calls the returned function. */
  add({ body, workspace }: HttpResponse): () => void {
    if (this.#addUser(body, 1) === 1) this.#shares.add(workspace, body.length)
    return () => {
      if (this.#addUser(body, -1) === 0) this.#shares.add(workspace, -body.length)
    }
  }

  /**
   * Adds or removes a response and returns how many responses share its body. Node copies texts, so no response shares
   * a text.
   */
  #addUser(body: Body, change: 1 | -1): number {
    if (typeof body === "string") return change === 1 ? 1 : 0
    const users = (this.#users.get(body) ?? 0) + change
    if (users === 0) this.#users.delete(body)
    else this.#users.set(body, users)
    return users
  }
}

/**
 * Makes a server that runs the app and tracks its connections. The server does not listen yet. The functions below are
 * in the order in which a request passes through them. `rejectConnection` handles the events without a `ServerResponse`.
 */
export const makeNodeServer = Effect.fnUntraced(function* (limits: ConnectionLimits) {
  const connections = new Connections(limits)
  const bodies = new BodyReader()
  const unsent = new UnsentBytes(limits.maxUnsentBytes)
  const app = yield* makeApp((response) => unsent.hasRoom(response))
  const context = yield* Effect.context<never>()
  const fork = Effect.runForkWith(context)
  const runSync = Effect.runSyncWith(context)
  const server = createServer({
    ...limits,
    requireHostHeader: false,
    // Without this option, Node would use only the first of several Authorization or Host headers.
    joinDuplicateHeaders: true
  })
  server.timeout = limits.timeout
  server.maxConnections = limits.maxConnections
  server.on("connection", (socket) => connections.add(socket))
  server.on("request", (request, response) => handleRequest(request, response))
  server.on("checkExpectation", (request, response) => handleRequest(request, response, ExpectationFailed))
  server.on("connect", (request, socket) => rejectConnection(socket, RouteNotFound, request))
  server.on("clientError", (error, socket) => rejectConnection(socket, toApiError(error)))

  const handleRequest = (request: IncomingMessage, response: ServerResponse, error?: ApiError): void => {
    if (!connections.begin(response)) return
    // Node's parser runs JavaScript for each chunk of a body. Pausing the socket keeps the parser from reading a body
    // that no endpoint reads.
    if (hasUnreadBody(request)) request.socket.pause()
    const problem = error ?? (hasAcceptableHead(request) ? undefined : BadRequest)
    if (problem === undefined) runApp(request, response)
    else respond(response, runSync(reject(problem, request)))
  }

  /** Runs the app. A disconnect does not cancel the request: the request completes, and is logged and counted. */
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

  const batch: Array<readonly [ServerResponse, HttpResponse]> = []

  /**
   * Writes a response at the end of this event-loop turn, back to back with the other responses of the turn. Socket
   * writes dominate the cost of a cache hit; batching makes them about a third cheaper.
   */
  const respond = (response: ServerResponse, content: HttpResponse): void => {
    connections.hold(response, unsent.add(content))
    if (batch.push([response, content]) === 1) setImmediate(writeBatch)
  }

  const writeBatch = (): void => {
    for (const [response, content] of batch.splice(0))
      if (!response.destroyed) writeResponse(response, content)
  }

  /**
   * Writes a response, without its body for a HEAD request. The connection ends after the response if the request has
   * an unread body or an Upgrade header. Node parses nothing behind an Upgrade header.
   */
  const writeResponse = (response: ServerResponse, { status, headers, body }: HttpResponse): void => {
    const { req: request } = response
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
      // For a response without a body, Node calls back at once, even while earlier responses are unsent.
      if (response.socket === null) response.once("socket", writeAndClose)
      else writeAndClose()
    } else response.end(sentBody, "latin1")
  }

  /**
   * Closes a connection on which Node parses no further request. If no response is in flight, first sends the error. If
   * responses are in flight, sends no error, and closes the connection immediately, unless the body of a request is
   * unread. In that case, closes the connection after the last response.
   */
  const rejectConnection = (socket: Duplex, error: ApiError, request?: IncomingMessage): void => {
    // While a connection is closing, the parser can report further errors.
    if (!socket.writable) return
    const responses = connections.findResponses(socket)
    const last = responses.at(-1)
    if (last === undefined) connections.closeAfter(socket, encodeResponse(runSync(reject(error, request))))
    else if (!responses.some(({ req }) => hasUnreadBody(req))) socket.destroy()
    // The body is invalid, so `BodyReader` must not wait for the rest of the body.
    else if (!last.req.complete) last.req.emit("close")
    else if (!last.headersSent) last.setHeader("connection", "close")
  }

  return { server, connections }
})
