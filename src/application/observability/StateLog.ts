import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

/** Logs each change of a dependency's state: that the dependency has failed, or that it works again. */
export interface StateLog {
  /** Reports that the dependency works. */
  readonly up: Effect.Effect<void>
  /** Reports that the dependency does not work, and the reason, if known. */
  readonly down: (reason?: string) => Effect.Effect<void>
}

/**
 * Makes the log of one dependency's state. The dependency is assumed to work until the first report, so a start without
 * a failure logs nothing.
 *
 * @param messages `failed` is logged as a warning, followed by the reason. `restored`, if given, is logged as info.
 * @param gauge each report sets the gauge: to 1 if the dependency works, otherwise to 0
 */
export const makeStateLog = (
  { failed, restored }: { readonly failed: string; readonly restored?: string },
  gauge?: Metric.Gauge<number>
): StateLog => {
  let isUp = true
  const report = (state: boolean, log: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const hasChanged = state !== isUp
      isUp = state
      const update = gauge === undefined ? Effect.void : Metric.update(gauge, state ? 1 : 0)
      return hasChanged ? Effect.andThen(update, log) : update
    })
  return {
    up: report(true, restored === undefined ? Effect.void : Effect.logInfo(restored)),
    down: (reason) => report(false, Effect.logWarning(reason === undefined ? failed : `${failed}: ${reason}`))
  }
}
