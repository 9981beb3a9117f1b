import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admission } from "../../application/Admission.ts"
import { Lifecycle } from "../../application/Lifecycle.ts"
import type { Prompts } from "../../application/Prompts.ts"
import type { Readiness } from "../../application/Readiness.ts"
import {
  type ApiError,
  BadRequest,
  ExpectationFailed,
  errorAnswer,
  errorBody,
  HeadersTooLarge,
  RequestTimeout,
  RouteNotFound
} from "./Errors.ts"
import { requestIdOf } from "./RequestInfo.ts"
import { httpApp } from "./Routes.ts"

export interface ServerOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** How long to go on accepting after being told to stop, in milliseconds. */
  readonly shutdownGrace: number
}

/** The address can't be listened on. */
export class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string }> {}

/** Bounds on what a client may take (DESIGN.md section 8). */
const clientLimits = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16 * 1024,
  requireHostHeader: false
}
const maxConnections = 10_000

/** How long requests that are under way may take to finish once no new ones are accepted, in milliseconds. */
const drainDeadline = 10_000

/** How long a connection that has sent nothing yet may still begin, in milliseconds. Node does not count it as idle. */
const firstRequestPatience = 500

const headersOf = (error: ApiError, requestId: string, body: string) => ({
  ...errorAnswer(error).headers,
  "content-type": "application/json",
  "content-length": String(Buffer.byteLength(body)),
  "x-request-id": requestId,
  "x-content-type-options": "nosniff"
})

/** Answers a request that never reaches the application, because its head is faulty, and closes. */
const refuse = (request: IncomingMessage, response: ServerResponse, error: ApiError): void => {
  const answer = errorAnswer(error)
  const body = errorBody(answer)
  const requestId = requestIdOf(request.headers["x-request-id"] as string | undefined)
  response.shouldKeepAlive = false
  response.writeHead(answer.status, headersOf(error, requestId, body))
  response.end(request.method === "HEAD" ? undefined : body)
}

/** The same where there is no request, only a connection. */
const refuseConnection = (socket: Duplex, error: ApiError): void => {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  const answer = errorAnswer(error)
  const body = errorBody(answer)
  const headers = {
    ...headersOf(error, requestIdOf(undefined), body),
    date: new Date().toUTCString(),
    connection: "close"
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n${lines.join("")}\r\n${body}`)
}

const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: HeadersTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: RequestTimeout
}

/** Counts the answers under way on each connection, for an error must not be written into the middle of one. */
class Exchanges {
  private readonly underWay = new WeakMap<Duplex, number>()
  private readonly afterwards = new WeakMap<Duplex, () => void>()

  begin(socket: Duplex, response: ServerResponse): void {
    this.underWay.set(socket, (this.underWay.get(socket) ?? 0) + 1)
    response.once("close", () => {
      const left = this.underWay.get(socket)! - 1
      this.underWay.set(socket, left)
      if (left === 0) this.afterwards.get(socket)?.()
    })
  }

  /** Runs once nothing is under way on the connection. */
  after(socket: Duplex, run: () => void): void {
    if ((this.underWay.get(socket) ?? 0) === 0) run()
    else this.afterwards.set(socket, run)
  }
}

/**
 * Duplicate headers as RFC 9110 joins them, where Node would keep the first only: two `Authorization` headers are no
 * single `Bearer <key>`. False when the head can't be accepted at all: not exactly one `Host`.
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
  return hosts === 1 || (hosts === 0 && request.httpVersion === "1.0")
}

const listen = (server: Server, options: ServerOptions): Effect.Effect<AddressInfo, CannotListen> =>
  Effect.callback((resume) => {
    const onError = (error: Error) => resume(Effect.fail(new CannotListen({ message: error.message })))
    server.once("error", onError)
    server.listen(options.port, options.host, () => {
      server.off("error", onError)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })

/** Stops accepting, lets what runs finish, and ends what does not finish in time. `unused` never sent a request. */
const close = (server: Server, unused: ReadonlySet<Socket>): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    server.close(() => resume(Effect.void))
    setTimeout(() => {
      for (const socket of unused) socket.destroy()
    }, firstRequestPatience).unref()
  }).pipe(
    Effect.timeoutOrElse({
      duration: drainDeadline,
      orElse: () => Effect.sync(() => server.closeAllConnections())
    })
  )

/**
 * Serves the API until the scope closes, then drains: `/readyz` says 503 at once, new requests are still accepted for
 * the grace, then connections close as their requests finish. Gives the address that it listens on.
 */
export const serve = (
  options: ServerOptions
): Effect.Effect<AddressInfo, CannotListen, Prompts | Admission | Readiness | Scope.Scope> =>
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const scope = yield* Effect.scope
    const handler = yield* NodeHttpServer.makeHandler(yield* httpApp, { scope })
    const exchanges = new Exchanges()
    let closing = false

    const unused = new Set<Socket>()
    const server = createServer(clientLimits, (request, response) => {
      unused.delete(request.socket)
      exchanges.begin(request.socket, response)
      if (closing) response.shouldKeepAlive = false
      if (joinDuplicates(request)) handler(request, response)
      else refuse(request, response, BadRequest)
    })
    server.maxConnections = maxConnections
    server.on("connection", (socket: Socket) => {
      unused.add(socket)
      socket.once("close", () => unused.delete(socket))
    })
    server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
      exchanges.begin(request.socket, response)
      refuse(request, response, ExpectationFailed)
    })
    server.on("connect", (_request: IncomingMessage, socket: Duplex) => {
      exchanges.after(socket, () => refuseConnection(socket, RouteNotFound))
    })
    server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      exchanges.after(socket, () => refuseConnection(socket, parserErrors[error.code ?? ""] ?? BadRequest))
    })

    yield* Effect.acquireRelease(listen(server, options), () =>
      Effect.sync(() => {
        lifecycle.phase = "draining"
      }).pipe(
        Effect.andThen(Effect.sleep(options.shutdownGrace)),
        Effect.andThen(
          Effect.sync(() => {
            closing = true
          })
        ),
        Effect.andThen(close(server, unused))
      )
    )
    return server.address() as AddressInfo
  })
