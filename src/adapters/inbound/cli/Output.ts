import * as Console from "effect/Console"
import { CommandError } from "./CommandError.ts"

/** The result of a command: a text for people, or the value for scripts. */
export const print = (asJson: boolean, value: unknown, text: string) =>
  Console.log(asJson ? JSON.stringify(value) : text)

/** Text from the database as a terminal may be shown it: what would steer the terminal is replaced. */
export const printable = (text: string): string => text.replace(/\p{Cc}/gu, "\ufffd")

/** Rows under their heads, in columns. */
export const table = (heads: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const cells = [heads, ...rows.map((row) => row.map(printable))]
  const widths = heads.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n")
}

/** What the operator is told of the failures that any command may meet. */
export const unavailable = () => new CommandError({ message: "the database can't be reached" })

export const workspaceNotFound = (id: string) => () =>
  new CommandError({ message: `there is no workspace ${id}: see workspaces list` })
