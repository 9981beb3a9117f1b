import * as CliOutput from "effect/cli/CliOutput"
import type * as HelpDoc from "effect/cli/HelpDoc"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { type Variable, Variables } from "./Environment.ts"

const formatter = CliOutput.defaultFormatter({ colors: false, globalFlags: "none" })

/** Marks a required flag in its description. */
const markRequired = (flag: HelpDoc.FlagDoc): HelpDoc.FlagDoc =>
  flag.required
    ? { ...flag, description: Option.map(flag.description, (description) => `${description} (required)`) }
    : flag

const formatVariables = (variables: ReadonlyArray<Variable>): string => {
  const width = Math.max(...variables.map(({ name }) => name.length))
  const lines = variables.map(({ name, description, defaultValue }) => {
    const value = defaultValue === undefined ? "" : ` (default: ${defaultValue})`
    return `  ${name.padEnd(width)}    ${description}${value}`
  })
  return ["ENVIRONMENT", ...lines].join("\n")
}

const formatLearnMore = (usage: string): string =>
  [
    "LEARN MORE",
    `  Run '${usage.replace(" [flags]", " --help")}' for the flags and examples of a subcommand.`,
    "  docs/command-line.md in the source code documents every command, variable and exit code."
  ].join("\n")

/** Formats the help of a command: usage, arguments, flags, subcommands, examples and environment variables. */
export const formatHelp = (doc: HelpDoc.HelpDoc): string => {
  const text = formatter.formatHelpDoc({ ...doc, flags: doc.flags.map(markRequired) })
  const variables = Context.get(doc.annotations, Variables)
  return [
    // The formatter leaves no empty line between subcommands and examples.
    text.replace(/([^\n])\nEXAMPLES\n/, "$1\n\nEXAMPLES\n"),
    ...(variables.length === 0 ? [] : [formatVariables(variables)]),
    ...(doc.subcommands === undefined ? [] : [formatLearnMore(doc.usage)])
  ].join("\n\n")
}

/** Formats the version of the program. */
export const formatVersion = formatter.formatVersion
