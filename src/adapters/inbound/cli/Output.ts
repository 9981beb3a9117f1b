import * as Console from "effect/Console"

/** Prints the result of a command to stdout: the value as JSON for scripts, or the text for people. */
export const print = (asJson: boolean, value: unknown, text: string) =>
  Console.log(asJson ? JSON.stringify(value) : text)

/** Replaces control characters, which could control the terminal. */
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, "\ufffd")

/** Formats rows in columns under their headings. */
export const formatTable = (
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string => {
  const cells = [headings, ...rows.map((row) => row.map(printable))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  return cells
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n")
}
