import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../../application/support/Lifecycle.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import { drain } from "./Drain.ts"
import { listen, type ListenAddress } from "./Listen.ts"
import { makeNodeServer } from "./NodeServer.ts"

export interface ServerOptions extends ListenAddress {
  /** How long the server still accepts requests after a shutdown has started, in milliseconds. */
  readonly shutdownGraceMs: number
  /** Replacements for some of `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

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
