import type { Server } from "node:net"
import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../../application/support/Lifecycle.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"
import { listen, type ListenAddress } from "./Listen.ts"
import { closeListener } from "./NodeInternals.ts"
import { makeNodeServer } from "./NodeServer.ts"

export interface ServerOptions extends ListenAddress {
  /** How long the server still accepts requests after a shutdown has started, in milliseconds. */
  readonly shutdownGraceMs: number
  /** Replacements for some of `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

/**
 * Fails with a defect if requests still run, because their clients get no response. If only slow clients are left, logs
 * a warning.
 */
const endDrain = (tracker: ConnectionTracker, drainTimeoutMs: number): Effect.Effect<void> => {
  const seconds = drainTimeoutMs / 1000
  return tracker.hasRunningRequests()
    ? Effect.die(new Error(`requests cut off: not completed within ${seconds} s`))
    : Effect.logWarning(`Responses cut off: not read within ${seconds} s`)
}

/**
 * Stops accepting connections and waits until in-flight requests are finished. Connections that are left after the
 * drain timeout are destroyed.
 */
const drain = (
  server: Server,
  tracker: ConnectionTracker,
  { idleCloseGraceMs, drainTimeoutMs }: ConnectionLimits
): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    tracker.startDraining()
    const idleCloser = setInterval(() => tracker.destroyIdle(), idleCloseGraceMs)
    closeListener(server, () => resume(Effect.void))
    return Effect.sync(() => clearInterval(idleCloser))
  }).pipe(
    Effect.timeoutOrElse({ duration: drainTimeoutMs, orElse: () => endDrain(tracker, drainTimeoutMs) }),
    Effect.ensuring(Effect.sync(() => tracker.destroyAll()))
  )

/**
 * Serves the API until the scope closes, then drains. While the server drains, `/readyz` returns 503. The server still
 * accepts requests for `shutdownGraceMs`. Then each connection closes when its requests are finished. Returns the
 * address that the server listens on.
 */
export const serve = (options: ServerOptions) =>
  Effect.gen(function* () {
    const lifecycle = yield* Lifecycle
    const limits: ConnectionLimits = { ...connectionLimits, ...options.limits }
    const { server, tracker } = yield* makeNodeServer(limits)
    return yield* Effect.acquireRelease(listen(server, options), () =>
      lifecycle.markDraining.pipe(
        Effect.andThen(Effect.sleep(options.shutdownGraceMs)),
        Effect.andThen(drain(server, tracker, limits))
      )
    )
  })
