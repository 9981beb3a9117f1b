import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http"
import { type AddressInfo, Server as NetServer, type Socket } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import type { Admission } from "../../application/Admission.ts"
import type { ChangeFeed } from "../../application/ChangeFeed.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import type { Prompts } from "../../application/Prompts.ts"
import type { Readiness } from "../../application/Readiness.ts"
import { makeApp, readTarget } from "./App.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import {
  type ApiError,
  BadRequest,
  ExpectationFailed,
  HeadersTooLarge,
  RequestTimeout,
  RouteNotFound,
  refusal
} from "./Errors.ts"
import { Exchanges, TrackedResponse } from "./Exchanges.ts"
import { type Answer, identified, pairsOf } from "./Message.ts"
import { requestIdOf } from "./RequestId.ts"
import { report } from "./RequestLog.ts"

export interface ServerOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** How long to go on accepting after being told to stop, in milliseconds. */
  readonly shutdownGrace: number
  /** Other limits than `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

/** The address can't be listened on. */
export class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string }> {}

/** How long requests that are under way may take to finish once no new ones are accepted, in milliseconds. */
export const drainDeadline = connectionLimits.drainTimeoutMs

/** How a refusal is reported. It took no time worth telling. */
interface Refusal {
  readonly method?: string | undefined
  readonly target?: string | undefined
  readonly status: number
  readonly requestId: string
}

const write = (response: ServerResponse, answer: Answer): void => {
  response.writeHead(answer.status, answer.headers as Array<string>)
  response.end(response.req.method === "HEAD" ? undefined : answer.body)
}

/**
 * Writes answers once the requests that came in the same turn of the event loop are all read: to write is what costs
 * most, and costs a third less while who reads the answer before it is still awake.
 */
const makeOutbox = () => {
  const waiting: Array<readonly [ServerResponse, Answer]> = []
  const send = (): void => {
    for (const [response, answer] of waiting.splice(0)) if (!response.destroyed) write(response, answer)
  }
  return (response: ServerResponse, answer: Answer): void => {
    if (waiting.push([response, answer]) === 1) setImmediate(send)
  }
}

/** Rejects a request that never reaches the app. The connection closes after the response. */
const refuse = (
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  requestId: string
): Refusal => {
  response.shouldKeepAlive = false
  write(response, answer)
  return { method: request.method, target: request.url, status: answer.status, requestId }
}

/** Like `refuse`, for a socket without a parsed request. Gives undefined if the socket is no longer writable. */
const refuseConnection = (
  socket: Socket,
  error: ApiError,
  method: string | undefined,
  onSent: () => void
): Refusal | undefined => {
  if (!socket.writable) return undefined
  const requestId = requestIdOf(undefined)
  const answer = identified(refusal(error), requestId)
  const { status, body } = answer
  const headers = [...pairsOf(answer), ["date", new Date().toUTCString()], ["connection", "close"]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n`
  socket.end(Buffer.concat([Buffer.from(head), body]), onSent)
  return { method, status, requestId }
}

const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: RequestTimeout
}

/**
 * Duplicate headers as RFC 9110 joins them, where Node would keep the first only: two `Authorization` headers are no
 * single `Bearer <key>`. False when the head can't be accepted at all: not exactly one `Host`, or a framing other than
 * length and chunks.
 */
const joinDuplicates = (request: IncomingMessage): boolean => {
  const { rawHeaders } = request
  let hosts = 0
  let authorization: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    if (name.length === 4 && name.toLowerCase() === "host") hosts++
    else if (name.length === 13 && name.toLowerCase() === "authorization") {
      authorization =
        authorization === undefined ? rawHeaders[i + 1]! : `${authorization}, ${rawHeaders[i + 1]}`
      request.headers.authorization = authorization
    }
  }
  const framing = request.headers["transfer-encoding"]
  return (
    (hosts === 1 || (hosts === 0 && request.httpVersion === "1.0")) &&
    (framing === undefined || framing.toLowerCase() === "chunked")
  )
}

/** Connections that may wait to be accepted; the kernel has a limit too. Node's default of 511 loses some of a burst. */
const maxBacklog = 10_000

const listen = (server: NetServer, options: ServerOptions): Effect.Effect<AddressInfo, CannotListen> =>
  Effect.callback((resume) => {
    const onError = (error: Error) => resume(Effect.fail(new CannotListen({ message: error.message })))
    server.once("error", onError)
    server.listen({ port: options.port, host: options.host, backlog: maxBacklog }, () => {
      server.off("error", onError)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })

/** Stops accepting and lets what runs finish. What does not finish in time is broken off, which is a defect. */
const close = (server: NetServer, exchanges: Exchanges, limits: ConnectionLimits): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const sweep = setInterval(() => exchanges.destroyIdle(), limits.idleCloseGraceMs)
    // Node's own close of an HTTP server tears up answers that are ended but not sent yet, and leaves half heads.
    NetServer.prototype.close.call(server, () => resume(Effect.void))
    return Effect.sync(() => clearInterval(sweep))
  }).pipe(
    Effect.timeoutOrElse({
      duration: limits.drainTimeoutMs,
      orElse: () =>
        Effect.die(new Error(`answers were broken off: not taken within ${limits.drainTimeoutMs / 1000} s`))
    }),
    Effect.ensuring(Effect.sync(() => exchanges.destroyAll()))
  )

/**
 * Serves the API until the scope closes, then drains: `/readyz` says 503 at once, new requests are still accepted for
 * the grace, then connections close as their requests finish. Gives the address that it listens on.
 */
export const serve = (
  options: ServerOptions
): Effect.Effect<AddressInfo, CannotListen, Prompts | Admission | Readiness | ChangeFeed | Scope.Scope> =>
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const app = yield* makeApp
    const context = yield* Effect.context<never>()
    const run = Effect.runSyncWith(context)
    const fork = Effect.runForkWith(context)
    const reportRefusal = (refusal: Refusal | undefined): void => {
      if (refusal === undefined) return
      const { method, target, status, requestId } = refusal
      const route = target === undefined ? undefined : readTarget(target)?.route
      run(report({ method, route, status, milliseconds: 0, requestId, caller: undefined }))
    }
    const limits: ConnectionLimits = { ...connectionLimits, ...options.limits }
    const post = makeOutbox()
    const answer = (response: TrackedResponse): void => {
      const { method, url, headers } = response.req
      const answering = fork(
        app(
          { method: method!, target: url!, headers: headers as Record<string, string | undefined> },
          hasRoom
        )
      )
      // A disconnect does not cancel the request: it completes, and is logged and counted.
      answering.addObserver((exit) => {
        if (Exit.isSuccess(exit)) {
          exchanges.answered(response, exit.value)
          post(response, exit.value)
        } else {
          exchanges.answered(response, undefined)
          response.req.socket.destroy()
        }
      })
    }
    const reject = (response: TrackedResponse, error: ApiError): void => {
      const requestId = requestIdOf(response.req.headers["x-request-id"] as string | undefined)
      const answer = identified(refusal(error), requestId)
      exchanges.answered(response, answer)
      reportRefusal(refuse(response.req, response, answer, requestId))
    }
    const unmetExpectations = new WeakSet<ServerResponse>()
    const exchanges = new Exchanges(limits, (response) => {
      if (response.req.headers.expect !== undefined && unmetExpectations.has(response))
        reject(response, ExpectationFailed)
      else if (joinDuplicates(response.req)) answer(response)
      else reject(response, BadRequest)
    })
    const hasRoom = (bytes: number): boolean => exchanges.hasRoom(bytes)
    const rejectConnection = (socket: Socket, error: ApiError, method?: string): void =>
      exchanges.reject(socket, (onSent) => {
        const refused = refuseConnection(socket, error, method, onSent)
        reportRefusal(refused)
        return refused !== undefined
      })
    const server = createServer(
      {
        ServerResponse: TrackedResponse,
        headersTimeout: limits.headersTimeoutMs,
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveTimeoutMs,
        connectionsCheckingInterval: limits.sweepIntervalMs,
        maxHeaderSize: limits.maxHeadBytes,
        requireHostHeader: false
      },
      (request, response) => exchanges.begin(request, response)
    )
    // Clients may half-close after sending the request; they still get a response.
    Object.assign(server, { httpAllowHalfOpen: true })
    server.on("connection", (socket: Socket) => exchanges.open(socket))
    server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
      unmetExpectations.add(response)
      exchanges.begin(request, response)
    })
    server.on("connect", ({ method }: IncomingMessage, socket) => {
      rejectConnection(socket as Socket, RouteNotFound, method)
    })
    server.on("clientError", (error: NodeJS.ErrnoException, stream) => {
      const socket = stream as Socket
      const known = parserErrors[error.code ?? ""]
      // While the server does not read, the client is not to blame for a request that does not arrive.
      if (known === RequestTimeout && socket.isPaused()) return
      exchanges.reject(socket, (onSent) => {
        if (exchanges.isMidRequest(socket)) return false
        const refused = refuseConnection(socket, known ?? BadRequest, undefined, onSent)
        reportRefusal(refused)
        return refused !== undefined
      })
    })

    yield* Effect.acquireRelease(listen(server, options), () =>
      Effect.sync(() => {
        lifecycle.phase = "draining"
      }).pipe(
        Effect.andThen(Effect.sleep(options.shutdownGrace)),
        Effect.andThen(Effect.sync(() => exchanges.close())),
        Effect.andThen(close(server, exchanges, limits))
      )
    )
    return server.address() as AddressInfo
  })
