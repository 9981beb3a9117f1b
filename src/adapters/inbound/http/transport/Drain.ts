import type { Server } from "node:net"
import * as Effect from "effect/Effect"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"
import { closeListener } from "./NodeInternals.ts"

/**
 * Stops accepting connections and waits until in-flight requests are finished. Dies if responses are left after the
 * drain timeout; their connections are destroyed.
 */
export const drain = (
  server: Server,
  tracker: ConnectionTracker,
  { idleCloseGraceMs, drainTimeoutMs }: ConnectionLimits
): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    tracker.startDraining()
    const sweep = setInterval(() => tracker.destroyIdle(), idleCloseGraceMs)
    closeListener(server, () => resume(Effect.void))
    return Effect.sync(() => clearInterval(sweep))
  }).pipe(
    Effect.timeoutOrElse({
      duration: drainTimeoutMs,
      orElse: () => Effect.die(new Error(`responses cut off: not taken within ${drainTimeoutMs / 1000} s`))
    }),
    Effect.ensuring(Effect.sync(() => tracker.destroyAll()))
  )
