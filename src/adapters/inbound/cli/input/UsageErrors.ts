import type * as CliError from "effect/cli/CliError"
import type * as Command from "effect/cli/Command"
import { findCommand, listSubcommands } from "./CommandTree.ts"
import { ExitError, usageExitCode } from "../output/Errors.ts"
import { toPrintable, quote } from "../output/Output.ts"

const suggest = (suggestions: ReadonlyArray<string>): string =>
  suggestions.length === 0 ? "" : ` (did you mean ${suggestions.join(" or ")}?)`

/** Describes a rule of a value. A list of literals has the form `"a" | "b"`. */
const describeRule = (expected: string): string =>
  expected.includes(" | ") ? `one of ${expected.replaceAll(" | ", ", ").replaceAll('"', "")}` : expected

const describeInvalidValue = ({ kind, option, value, expected }: CliError.InvalidValue): string => {
  const name = kind === "flag" ? `--${option}` : `<${option}>`
  if (expected === "at most 1 value") return `${name} must be given only once`
  if (expected.startsWith("omit the value")) return `${name}: ${expected}`
  if (expected.includes(" | ") || value !== "") {
    const got = value === "" ? "" : ` (got ${quote(value)})`
    return `${name} must be ${describeRule(expected)}${got}`
  }
  // For a flag without a value at the end of the line, `expected` is the type of the value.
  return expected === "string" || expected.startsWith("<")
    ? `${name} needs a value`
    : `${name} must not be empty`
}

/** Describes an error of the parser in words of this command line: the flag or argument, then its rule. */
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
    case "DuplicateOption":
    case "UserError":
    case "ValidationError":
      return error.message
  }
}

/** Describes wrong usage of the command at `error.commandPath` in one line, with the command that shows its help. */
export const toUsageFailure = (
  root: Command.Command.Any,
  { commandPath, errors }: CliError.ShowHelp
): ExitError => {
  const path = commandPath.join(" ")
  const { command } = findCommand(root, commandPath.slice(1))
  // After an unknown command, its flags are unknown too.
  const unknownCommand = errors.find(({ _tag }) => _tag === "UnknownSubcommand")
  const causes = unknownCommand === undefined ? errors : [unknownCommand]
  const problem =
    causes.length === 0
      ? `a command is missing after '${path}': one of ${listSubcommands(command)
          .map(({ name }) => name)
          .join(", ")}`
      : causes.map(describeError).join("; ")
  return new ExitError({ message: `${problem}; see '${path} --help'`, exitCode: usageExitCode })
}
