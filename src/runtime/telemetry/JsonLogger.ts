import * as Effect from "effect/Effect"
import * as Formatter from "effect/Formatter"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { isPlainObject, type LogEntry, toLogEntry } from "./LogEntry.ts"

/**
 * Returns true only if `JSON.stringify` writes the value exactly as `Formatter.formatJson` does. `JSON.stringify` is
 * much faster.
 */
const isJsonSafe = (value: unknown, depth: number): boolean => {
  if (typeof value !== "object") return typeof value !== "bigint" && typeof value !== "function"
  if (value === null) return true
  return (
    depth > 0 &&
    (isPlainObject(value) || Array.isArray(value)) &&
    Object.values(value).every((v) => isJsonSafe(v, depth - 1))
  )
}

/** Formats an entry as one line of JSON. Redacted values stay redacted. */
export const formatEntry = (entry: LogEntry): string =>
  isJsonSafe(entry, 3) ? JSON.stringify(entry) : Formatter.formatJson(entry)

export const formatJsonLine: Logger.Logger<unknown, string> = Logger.make((options) =>
  formatEntry(toLogEntry(options))
)

/**
 * Makes a logger that writes the lines of one event-loop turn together, because the write dominates the cost of a log
 * line.
 */
const makeBatchedLogger = Effect.gen(function* () {
  const lines: Array<string> = []
  const flush = (): void => {
    if (lines.length > 0) process.stderr.write(lines.splice(0).join(""))
  }
  // If the process ends by `process.exit`, the exit listener writes the last lines.
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("exit", flush)),
    () =>
      Effect.sync(() => {
        flush()
        process.off("exit", flush)
      })
  )
  return Logger.map(formatJsonLine, (line) => {
    if (lines.push(`${line}\n`) === 1) setImmediate(flush)
  })
})

export const layer: Layer.Layer<never> = Logger.layer([makeBatchedLogger])
