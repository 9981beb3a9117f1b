import type { Server } from "node:net"
import * as Effect from "effect/Effect"
import type { ConnectionLimits } from "./ConnectionLimits.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"
import { closeListener } from "./NodeInternals.ts"

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
export const drain = (
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
