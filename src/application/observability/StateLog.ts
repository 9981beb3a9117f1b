import * as Effect from "effect/Effect"

/** Logs when a dependency of the service fails and when it works again, once for each change. */
export interface StateLog {
  /** Reports that the dependency works. */
  readonly up: Effect.Effect<void>
  /** Reports that the dependency does not work, with the reason if one is known. */
  readonly down: (reason?: string) => Effect.Effect<void>
}

/**
 * Makes the log of one dependency's state. The dependency is assumed to work until the first report, so a start without
 * a failure logs nothing.
 *
 * ```ts
 * const stateLog = makeStateLog({
 *   failed: "Redis unavailable; each process counts alone",
 *   restored: "Redis restored; rate limits are shared"
 * })
 * yield* stateLog.down("connection refused") // Redis unavailable; each process counts alone: connection refused
 * yield* stateLog.up // Redis restored; rate limits are shared
 * ```
 *
 * @param messages `failed` is logged as a warning, followed by the reason. `restored`, if given, is logged as info.
 */
export const makeStateLog = (messages: { readonly failed: string; readonly restored?: string }): StateLog => {
  let isUp = true
  return {
    up: Effect.suspend(() => {
      const wasUp = isUp
      isUp = true
      return wasUp || messages.restored === undefined ? Effect.void : Effect.logInfo(messages.restored)
    }),
    down: (reason) =>
      Effect.suspend(() => {
        const wasUp = isUp
        isUp = false
        const { failed } = messages
        return wasUp ? Effect.logWarning(reason === undefined ? failed : `${failed}: ${reason}`) : Effect.void
      })
  }
}
