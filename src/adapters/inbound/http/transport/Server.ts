import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Admission } from "../../../../application/access/Admission.ts"
import type { Outage } from "../../../../application/freshness/Outage.ts"
import { Lifecycle } from "../../../../application/support/Lifecycle.ts"
import type { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import type { Observations } from "../../../../application/ports/Observations.ts"
import type { Readiness } from "../../../../application/ports/Readiness.ts"
import type { Prompts } from "../../../../application/reading/Prompts.ts"
import type { MountedEndpoint } from "../../contract/MountedEndpoint.ts"
import { type ConnectionLimits, connectionLimits } from "./ConnectionLimits.ts"
import { drain } from "./Drain.ts"
import { listen, type ListenAddress, type ListenError } from "./Listen.ts"
import { makeNodeServer } from "./NodeServer.ts"

export interface ServerOptions extends ListenAddress {
  /** How long the server still accepts requests after a shutdown has started, in milliseconds. */
  readonly shutdownGraceMs: number
  /** Replacements for some of `connectionLimits`, for tests. */
  readonly limits?: Partial<ConnectionLimits>
}

/**
 * Serves the API until the scope closes, then drains: `/readyz` returns 503 at once, new requests are accepted until
 * the grace has passed, then connections close as their requests finish. Returns the address that the server listens
 * on.
 */
export const serve = (
  options: ServerOptions
): Effect.Effect<
  AddressInfo,
  ListenError,
  | Prompts
  | Admission
  | Readiness
  | ChangeFeed
  | Lifecycle
  | Observations
  | Outage
  | MountedEndpoint
  | Scope.Scope
> =>
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
