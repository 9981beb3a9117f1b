import { constants } from "node:os"

/**
 * The time after the first signal, in milliseconds, within which another signal is the same request to stop. Under npm,
 * Ctrl+C sends the signal twice.
 */
const duplicateSignalWindowMs = 250

const forceExit = (exitCode: number, reason: string): void => {
  console.error(`prompt-retrieval: ${reason}`)
  process.exit(exitCode)
}

/**
 * Limits the shutdown that the first SIGINT or SIGTERM starts. A shutdown that takes longer than `stopTimeoutMs` ends
 * the process immediately, as does a second signal that is no duplicate.
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
