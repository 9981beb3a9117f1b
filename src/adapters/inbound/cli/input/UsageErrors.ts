import type * as CliError from "effect/cli/CliError"
import type * as Command from "effect/cli/Command"
import { UsageError } from "../output/CommandError.ts"
import { quote, toPrintable } from "../output/Output.ts"

export const listSubcommands = (command: Command.Command.Any): ReadonlyArray<Command.Command.Any> =>
  command.subcommands.flatMap(({ commands }) => commands)

interface FoundCommand {
  readonly command: Command.Command.Any
  /** The names of the command's parents and of the command, without the root. */
  readonly path: ReadonlyArray<string>
  /** True if `command` has subcommands, and the next word is not the name of a subcommand. */
  readonly isUnknown: boolean
}

/** Finds the command that a command line names. The command line does not contain the name of `root`. */
export const findCommand = (root: Command.Command.Any, args: ReadonlyArray<string>): FoundCommand => {
  const path: Array<string> = []
  let command = root
  for (const word of args.filter((arg) => !arg.startsWith("-"))) {
    const subcommands = listSubcommands(command)
    const next = subcommands.find(({ name }) => name === word)
    if (next === undefined) return { command, path, isUnknown: subcommands.length > 0 }
    path.push(word)
    command = next
  }
  return { command, path, isUnknown: false }
}

/** Returns the arguments before `--`. The arguments after `--` are never flags. */
export const beforeOperands = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.includes("--") ? args.slice(0, args.indexOf("--")) : args

/** Returns true if a command line contains `--json`, even if the command line is not valid. */
export const isJsonRequested = (args: ReadonlyArray<string>): boolean =>
  beforeOperands(args).includes("--json")

const suggest = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : ` (did you mean ${suggestions.join(" or ")}?)`

const describeInvalidValue = ({ kind, option, value, expected }: CliError.InvalidValue): string => {
  const name = kind === "flag" ? `--${option}` : `<${option}>`
  if (expected === "at most 1 value") return `${name} must be given only once`
  if (expected.startsWith("omit the value")) return `${name}: ${expected}`
  // If the command line ends after a flag that needs a value, `expected` is the name of a type.
  if (value === "" && !expected.includes(" ")) return `${name} needs a value`
  // The parser writes a list of literals as `"a" | "b"`.
  const literals = expected.replaceAll(" | ", ", ").replaceAll('"', "")
  return `${name} must be ${expected.includes(" | ") ? `one of ${literals}` : expected} (got ${quote(value)})`
}

const describeError = (error: CliError.NonShowHelpErrors): string => {
  switch (error._tag) {
    case "InvalidValue":
      return describeInvalidValue(error)
    case "MissingArgument":
      return `<${error.argument}> is required`
    case "MissingOption":
      return `--${error.option} is required`
    case "UnexpectedArgument":
      return `unexpected argument ${error.arguments.map(quote).join(" ")}`
    case "UnknownSubcommand":
      return `unknown command ${quote(error.subcommand)}${suggest(error.suggestions)}`
    case "UnrecognizedOption":
      return `unknown flag ${toPrintable(error.option)}${suggest(error.suggestions)}`
    default:
      return error.message
  }
}

/** Describes wrong usage of a command in one line. If `errors` is empty, a subcommand is missing. */
export const describeUsage = (
  { command, path }: FoundCommand,
  errors: ReadonlyArray<CliError.NonShowHelpErrors>
): string => {
  const names = listSubcommands(command).map(({ name }) => name)
  if (errors.length === 0)
    return `a command is missing after '${formatPath(path)}': one of ${names.join(", ")}`
  // The flags of an unknown command are unknown too, so only the unknown command is reported.
  const unknownCommand = errors.find(({ _tag }) => _tag === "UnknownSubcommand")
  return (unknownCommand === undefined ? errors : [unknownCommand]).map(describeError).join("; ")
}

const formatPath = (path: ReadonlyArray<string>): string => ["prompt-retrieval", ...path].join(" ")

/** Appends the command that shows the help to a description of wrong usage. */
export const addHelp = ({ path }: FoundCommand, message: string): UsageError =>
  new UsageError({ message: `${message}; see '${formatPath(path)} --help'` })
