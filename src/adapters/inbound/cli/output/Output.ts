import { fstatSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { keyPrefix } from "../../../../domain/ApiKey.ts"
import { maxProblems, type Problem } from "../../../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { AsJson, type CommandError, makeWriteError, warn } from "./CommandError.ts"

const makeOutputError = (error: unknown): CommandError => makeWriteError("to standard output", error)

/** Writes to stdout as a stream, and waits until Node has written the whole output. */
const writeToStream = (output: string | Uint8Array): Effect.Effect<void, CommandError> =>
  Effect.callback((resume) => {
    const { stdout } = process
    const fail = (error: Error) => resume(makeOutputError(error))
    // A failed write also emits `error`. Without a listener, this event would end the process.
    stdout.once("error", fail)
    stdout.write(output, (error) => {
      if (error) return fail(error)
      stdout.off("error", fail)
      resume(Effect.void)
    })
  })

/** Writes to stdout. Fails if stdout does not take the whole output, for example because a disk is full. */
export const Stdout = Context.Reference<(output: string | Uint8Array) => Effect.Effect<void, CommandError>>(
  "prompt-retrieval/adapters/inbound/cli/output/Stdout",
  {
    defaultValue: () => (output) =>
      Effect.suspend(() => {
        if (!fstatSync(process.stdout.fd).isFile()) return writeToStream(output)
        // Node's stream would report no error if a full disk took only a part of the output.
        return Effect.try({ try: () => writeFileSync(process.stdout.fd, output), catch: makeOutputError })
      })
  }
)

/** Prints a result as JSON for scripts, or as text for people. Fails if stdout does not take the whole result. */
export const print = Effect.fnUntraced(function* (value: unknown, text: string) {
  const write = yield* Stdout
  yield* write(`${(yield* AsJson) ? JSON.stringify(value) : text}\n`)
})

export const printExported = (id: WorkspaceId, target: string) =>
  print({ workspace_id: id, out: resolve(target) }, `Exported workspace ${id} to ${target}`)

/**
 * Prints the warnings about the files of a directory. With `--json`, prints nothing, because the result contains the
 * warnings.
 */
export const printWarnings = Effect.fnUntraced(function* (warnings: ReadonlyArray<Problem>) {
  if (yield* AsJson) return
  for (const { path, message } of warnings.slice(0, maxProblems))
    yield* warn(toPrintable(`${path}: ${message}`))
  const more = warnings.length - maxProblems
  if (more > 0) yield* warn(`… and ${more} more warnings`)
})

/** Replaces control characters, which could control the terminal. */
export const toPrintable = (text: string): string => text.replace(/\p{Cc}/gu, "\ufffd")

/** Replaces control characters except tabs and line breaks. */
export const toPrintableText = (text: string): string => text.replace(/\r(?!\n)|[^\P{Cc}\r\n\t]/gu, "\ufffd")

/** Makes a text printable if stdout is a terminal. A file or a pipe gets the exact text. */
export const toOutputText = (text: string): string =>
  process.stdout.isTTY === true ? toPrintableText(text) : text

/** Quotes a value of the command line. Replaces a value that contains an API key, because a log can keep messages. */
export const quote = (value: string): string =>
  value.includes(keyPrefix) ? "an API key" : `"${toPrintable(value)}"`

/** Returns a number with a noun, such as `1 prompt` or `2 prompts`. */
export const pluralize = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const formatCell = (value: unknown): string => toPrintable(String(value ?? "-"))

const alignColumns = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), 0)
  )
  return rows
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n")
}

/** Formats fields, one per line, with `-` for a null. */
export const formatFields = (fields: Readonly<Record<string, unknown>>): string =>
  alignColumns(Object.entries(fields).map(([name, value]) => [name, formatCell(value)]))

/**
 * Makes the function that formats rows as a table. The keys of `columns` are the headings. A column shows a field of
 * the rows, or the results of a function. A cell with a null shows `-`.
 */
export const makeTableFormatter =
  <Row>(columns: Readonly<Record<string, keyof Row | ((row: Row) => string)>>) =>
  (rows: ReadonlyArray<Row>): string =>
    alignColumns([
      Object.keys(columns),
      ...rows.map((row) =>
        Object.values(columns).map((column) =>
          formatCell(typeof column === "function" ? column(row) : row[column])
        )
      )
    ])
