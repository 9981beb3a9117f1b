import { type AddressInfo, Server } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../../application/Lifecycle.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import type { Connections } from "./Connections.ts"
import { makeNodeServer } from "./NodeServer.ts"

export class ListenError extends Data.TaggedError("ListenError")<{ readonly message: string }> {}

interface ServerOptions {
  readonly host: string
  /** 0 means any free port. */
  readonly port: number
  /** How long the server still accepts requests after a shutdown has started, in milliseconds. */
  readonly shutdownGraceMs: number
  /** Replacements for some of `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

/** Starts to listen and returns the actual address. */
export const listen = (
  server: Server,
  { host, port }: Pick<ServerOptions, "host" | "port">
): Effect.Effect<AddressInfo, ListenError> =>
  Effect.callback((resume) => {
    // Stays on the server, because a later error without a listener would end the process.
    server.on("error", ({ message }) => resume(Effect.fail(new ListenError({ message }))))
    // With Node's default backlog of 511, a burst would lose connections. The kernel may limit the backlog further.
    server.listen({ port, host, backlog: connectionLimits.maxConnections }, () =>
      resume(Effect.succeed(server.address() as AddressInfo))
    )
  })

/** Stops listening, waits for in-flight requests, and destroys connections that are open after the drain timeout. */
const drain = (
  server: Server,
  connections: Connections,
  { idleCloseGraceMs, drainTimeoutMs }: ConnectionLimits
): Effect.Effect<void> => {
  connections.isDraining = true
  const closed = Effect.callback<void>((resume) => {
    // The `close` method of Node's HTTP server would destroy connections whose responses are not sent completely.
    Server.prototype.close.call(server, () => resume(Effect.void))
  })
  const destroyAll = Effect.sync(() => {
    connections.destroyAll()
    // Stops the timer with which Node checks the time limits.
    server.close()
  })
  const destroyIdle = Effect.sync(() => connections.destroyIdle())
  return Effect.raceFirst(closed, Effect.forever(Effect.delay(destroyIdle, idleCloseGraceMs))).pipe(
    Effect.timeoutOrElse({
      duration: drainTimeoutMs,
      orElse: () => Effect.logWarning(`Connections cut off: not finished within ${drainTimeoutMs / 1000} s`)
    }),
    Effect.ensuring(destroyAll)
  )
}

/**
 * Serves the API until the scope closes, then drains. `/readyz` returns 503, and requests stop waiting for changes. The
 * server accepts requests for `shutdownGraceMs`, and then finishes in-flight requests. Returns the address that the
 * server listens on.
 */
export const serve = (options: ServerOptions) =>
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const limits: ConnectionLimits = { ...connectionLimits, ...options.limits }
    const { server, connections } = yield* makeNodeServer(limits)
    return yield* Effect.acquireRelease(listen(server, options), () =>
      lifecycle.markDraining.pipe(
        Effect.andThen(Effect.sync(() => connections.endWaits())),
        Effect.andThen(Effect.sleep(options.shutdownGraceMs)),
        Effect.andThen(Effect.suspend(() => drain(server, connections, limits)))
      )
    )
  })
