import { constants } from "node:os"

/** A second signal within this many milliseconds is a duplicate, because Ctrl+C under npm sends the signal twice. */
const duplicateSignalWindowMs = 250

const forceExit = (exitCode: number, reason: string): void => {
  console.error(`prompt-retrieval: ${reason}`)
  process.exit(exitCode)
}

/**
 * Limits the time of the shutdown that the first SIGINT or SIGTERM starts. The process exits immediately if the shutdown
 * takes longer than `stopTimeoutMs`, or if a second signal that is not a duplicate arrives.
 */
export const installSignalHandlers = (stopTimeoutMs: number): void => {
  let firstSignalAt: number | undefined
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (firstSignalAt === undefined) {
        firstSignalAt = performance.now()
        setTimeout(() => forceExit(1, "did not stop in time"), stopTimeoutMs).unref()
      } else if (performance.now() - firstSignalAt > duplicateSignalWindowMs) {
        forceExit(128 + constants.signals[signal], "stopped by a second signal")
      }
    })
  }
}
