import * as Formatter from "effect/Formatter"
import * as Logger from "effect/Logger"

/** Whether a value is what JSON says as it is, down to some depth: then it costs much less to write. */
const isPlain = (value: unknown, depth: number): boolean => {
  if (typeof value !== "object") return typeof value !== "bigint" && typeof value !== "function"
  if (value === null) return true
  const isMap = Object.getPrototypeOf(value) === Object.prototype
  return (
    depth > 0 && (isMap || Array.isArray(value)) && Object.values(value).every((v) => isPlain(v, depth - 1))
  )
}

/** An entry as one line, as Effect's own JSON logger writes it. */
export const formatEntry = (entry: object): string =>
  isPlain(entry, 3) ? JSON.stringify(entry) : Formatter.formatJson(entry)

const lines: Array<string> = []

const flush = (): void => {
  if (lines.length > 0) process.stderr.write(lines.splice(0).join(""))
}

// Whatever ends the process, short of a kill from outside, its last lines are written.
process.on("exit", flush)

/** Logs to stderr, a line of JSON each, those of one turn of the event loop in one write. */
export const jsonLogger: Logger.Logger<unknown, void> = Logger.map(Logger.formatStructured, (entry) => {
  if (lines.push(`${formatEntry(entry)}\n`) === 1) setImmediate(flush)
})
