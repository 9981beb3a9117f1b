import type { Server as HttpServer } from "node:http"
import { Server } from "node:net"
import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../../application/Lifecycle.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import { type ListenOptions, listen } from "./Listen.ts"
import { type Connections, makeNodeServer } from "./NodeServer.ts"

interface ServerOptions extends ListenOptions {
  /** How long the server still accepts requests after a shutdown has started, in milliseconds. */
  readonly shutdownGraceMs: number
  /** Replacements for some of `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

/** Stops listening, waits for in-flight requests, and destroys connections that are open after the drain timeout. */
const drain = (
  server: HttpServer,
  connections: Connections,
  { idleCloseGraceMs, drainTimeoutMs }: ConnectionLimits
): Effect.Effect<void> => {
  connections.isDraining = true
  const closed = Effect.callback<void>((resume) => {
    // The `close` method of Node's HTTP server would destroy connections whose responses are not sent completely.
    Server.prototype.close.call(server, () => resume(Effect.void))
  })
  const destroyIdle = Effect.sync(() => connections.destroyIdle())
  const destroyAll = Effect.sync(() => {
    server.closeAllConnections()
    // Stops the timer with which Node checks the time limits.
    server.close()
  })
  return Effect.raceFirst(closed, Effect.forever(Effect.delay(destroyIdle, idleCloseGraceMs))).pipe(
    Effect.timeoutOrElse({
      duration: drainTimeoutMs,
      orElse: () => Effect.logWarning(`Connections cut off: not finished within ${drainTimeoutMs / 1000} s`)
    }),
    Effect.ensuring(destroyAll)
  )
}

/**
 * Serves the API until the scope closes. Then `/readyz` returns 503, and requests stop waiting for changes. The server
 * still accepts requests for `shutdownGraceMs`, and then finishes in-flight requests. Returns the server's address.
 */
export const serve = Effect.fnUntraced(function* (options: ServerOptions) {
  const lifecycle = yield* Lifecycle
  const limits: ConnectionLimits = { ...connectionLimits, ...options.limits }
  const { server, connections } = yield* makeNodeServer(limits)
  return yield* Effect.acquireRelease(listen(server, options, "HOST and PORT"), () =>
    lifecycle.markDraining.pipe(
      Effect.andThen(Effect.sync(() => connections.endWaits())),
      Effect.andThen(Effect.sleep(options.shutdownGraceMs)),
      Effect.andThen(() => drain(server, connections, limits))
    )
  )
})
