import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import { toLogEntry } from "./Logging.ts"

/** The fields of a log line. The fields never contain a key, a query string or the content of a prompt. */
export type HostLogFields = Readonly<Record<string, unknown>>

/**
 * Receives log lines. `info` receives one line per request, and a line when a failure has ended. `warn` and `error`
 * receive conditions that operators should know about. `debug` receives all other lines, such as one per health check.
 * If the logger has no `error`, errors go to `warn`. If the logger has no function for another level, the lines of that
 * level are dropped. `console` is a valid logger. The API ignores exceptions of a logger.
 */
export interface HostLogger {
  debug?(message: string, fields: HostLogFields): void
  info?(message: string, fields: HostLogFields): void
  warn?(message: string, fields: HostLogFields): void
  error?(message: string, fields: HostLogFields): void
}

const findMinimumLevel = (logger: HostLogger): LogLevel.LogLevel => {
  if (logger.debug !== undefined) return "All"
  return logger.info !== undefined ? "Info" : "Warn"
}

const selectFunction = (logger: HostLogger, level: string) => {
  if (level === "fatal" || level === "error") return logger.error ?? logger.warn
  return level === "warn" || level === "info" ? logger[level] : logger.debug
}

export const layer = (logger: HostLogger): Layer.Layer<never> =>
  Layer.merge(
    Logger.layer([
      Logger.make((options) => {
        const { time: _, level, msg, ...fields } = toLogEntry(options)
        try {
          selectFunction(logger, level)?.call(logger, msg, fields)
        } catch {
          // An exception of the logger must not fail a request.
        }
      })
    ]),
    Layer.succeed(References.MinimumLogLevel, findMinimumLevel(logger))
  )
