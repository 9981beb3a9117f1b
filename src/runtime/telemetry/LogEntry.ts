import * as Cause from "effect/Cause"
import * as Formatter from "effect/Formatter"
import type * as Logger from "effect/Logger"
import * as References from "effect/References"

/** A log line as a flat object: `time`, `level` and `msg`, then the fields, then `err` if there is an error. */
export interface LogEntry {
  /** ISO 8601, UTC. */
  time: string
  level: string
  msg: string
  [field: string]: unknown
}

/** Returns true for an object like those of object literals, and false for an instance of a class. */
export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype

const toText = (value: unknown): string => (typeof value === "string" ? value : Formatter.formatJson(value))

/**
 * Converts a log call to an entry. Texts are joined to `msg`. Annotations and the properties of plain objects become
 * fields. A cause or an `Error` becomes the text `err`, which includes the stack. No field replaces `time`, `level` or
 * `msg`.
 */
export const toLogEntry = ({ message, logLevel, cause, date, fiber }: Logger.Options<unknown>): LogEntry => {
  const time = date.toISOString()
  const level = logLevel.toLowerCase()
  const entry: LogEntry = { time, level, msg: "" }
  Object.assign(entry, fiber.getRef(References.CurrentLogAnnotations))
  let msg = ""
  for (const part of Array.isArray(message) ? message : [message]) {
    if (isPlainObject(part)) Object.assign(entry, part)
    else if (part instanceof Error) entry.err = Cause.pretty(Cause.die(part))
    else msg = msg === "" ? toText(part) : `${msg} ${toText(part)}`
  }
  if (cause.reasons.length > 0) entry.err = Cause.pretty(cause)
  entry.time = time
  entry.level = level
  entry.msg = msg
  return entry
}
