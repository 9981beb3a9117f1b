import type { Writable } from "node:stream"
import { styleText } from "node:util"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Formatter from "effect/Formatter"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import type { ServiceConfig } from "../config/Config.ts"

/** A log line as a flat object: `time`, `level` and `msg`, then the fields, then `err` if there is an error. */
interface LogEntry {
  /** When the line was logged, in ISO 8601 and UTC. */
  time: string
  level: string
  msg: string
  [field: string]: unknown
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

const toText = (value: unknown): string => (typeof value === "string" ? value : Formatter.formatJson(value))

/**
 * Converts a log call to an entry. Texts are joined to `msg`. Annotations and the properties of plain objects become
 * fields. A cause or an `Error` becomes the text `err` with the stack. No field replaces `time`, `level` or `msg`.
 */
export const toLogEntry = ({ message, logLevel, cause, date, fiber }: Logger.Options<unknown>): LogEntry => {
  const header = { time: date.toISOString(), level: logLevel.toLowerCase(), msg: "" }
  const entry: LogEntry = { ...header, ...fiber.getRef(References.CurrentLogAnnotations) }
  for (const part of Array.isArray(message) ? message : [message]) {
    if (isPlainObject(part)) Object.assign(entry, part)
    else if (part instanceof Error) entry.err = Cause.pretty(Cause.die(part))
    else header.msg = header.msg === "" ? toText(part) : `${header.msg} ${toText(part)}`
  }
  if (cause.reasons.length > 0) entry.err = Cause.pretty(cause)
  return Object.assign(entry, header)
}

/** Formats an entry as one line of JSON. Redacted values stay redacted. */
export const formatJson = (entry: LogEntry): string => {
  try {
    return JSON.stringify(entry)
  } catch {
    // Effect's formatter also writes a bigint or a circular reference, but takes four times as long.
    return Formatter.formatJson(entry)
  }
}

/** Formats an entry for people: time of day, level, message and fields on one line, then the error, if any. */
export const formatPretty = ({ time, level, msg, err, ...fields }: LogEntry): string => {
  const color = level === "error" || level === "fatal" ? "red" : level === "warn" ? "yellow" : "green"
  const label = styleText(color, level.toUpperCase().padEnd(5), { stream: process.stderr })
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`${name}=${toText(value)}`]
  )
  const line = [time.slice(11, 23), label, msg, ...pairs].join(" ")
  return err === undefined ? line : `${line}\n${err}`
}

/** The maximum number of unread bytes in the stream. While the stream holds more, the logger drops lines. */
const maxUnreadBytes = 4 * 1024 * 1024

/**
 * Makes a logger that writes the lines of one event-loop turn together, because the write dominates the cost of a log
 * line. If the reader of the stream stops, the logger drops and counts lines instead of filling the memory. Once the
 * reader has caught up, the logger writes the number of dropped lines.
 */
export const makeStreamLogger = Effect.fnUntraced(function* (
  stream: Writable,
  format: (entry: LogEntry) => string
) {
  let lines = ""
  let dropped = 0
  const flush = (): void => {
    if (lines !== "") stream.write(lines)
    lines = ""
  }
  const add = (entry: LogEntry): void => {
    if (lines === "") setImmediate(flush)
    lines += `${format(entry)}\n`
  }
  const reportDropped = (): void => {
    const msg = "Log reader too slow; lines dropped"
    add({ time: new Date().toISOString(), level: "warn", msg, dropped })
    dropped = 0
  }
  // If the process ends by `process.exit`, the exit listener writes the last lines.
  process.on("exit", flush)
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      flush()
      process.off("exit", flush)
    })
  )
  return Logger.make((options) => {
    if (stream.writableLength <= maxUnreadBytes) add(toLogEntry(options))
    else if (++dropped === 1) stream.once("drain", reportDropped)
  })
})

/** Logs to stderr, in JSON or in a format for terminals. */
export const layer = ({ logFormat, logLevel }: Pick<ServiceConfig, "logFormat" | "logLevel">) =>
  Layer.merge(
    Logger.layer([makeStreamLogger(process.stderr, logFormat === "json" ? formatJson : formatPretty)]),
    Layer.succeed(References.MinimumLogLevel, logLevel)
  )
