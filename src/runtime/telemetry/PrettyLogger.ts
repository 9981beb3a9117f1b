import { inspect, styleText } from "node:util"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { type LogEntry, toLogEntry } from "./LogEntry.ts"

const colors: Readonly<Record<string, Parameters<typeof styleText>[0]>> = {
  trace: "gray",
  debug: "gray",
  info: "green",
  warn: "yellow",
  error: "red",
  fatal: "red"
}

const formatValue = (value: unknown): string =>
  typeof value === "string" ? value : inspect(value, { breakLength: Number.POSITIVE_INFINITY })

/** Formats an entry for people: time of day, level, message and fields on one line, then the error, if any. */
export const formatEntry = ({ time, level, msg, err, ...fields }: LogEntry): string => {
  const label = styleText(colors[level] ?? "reset", level.toUpperCase().padEnd(5), { stream: process.stderr })
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [`${name}=${formatValue(value)}`]
  )
  const line = [time.slice(11, 23), label, msg, ...pairs].join(" ")
  return err === undefined ? line : `${line}\n${err}`
}

/** Logs to stderr in a format for terminals. */
export const layer: Layer.Layer<never> = Logger.layer([
  Logger.make((options) => {
    process.stderr.write(`${formatEntry(toLogEntry(options))}\n`)
  })
])
