import * as Context from "effect/Context"
import * as CliOutput from "effect/cli/CliOutput"
import type * as HelpDoc from "effect/cli/HelpDoc"
import * as Option from "effect/Option"
import { type Variable, type VariableName, Variables, variables } from "../input/Environment.ts"

const formatter = CliOutput.defaultFormatter({ colors: false, globalFlags: "none" })

const markRequired = (flag: HelpDoc.FlagDoc): HelpDoc.FlagDoc =>
  flag.required
    ? { ...flag, description: Option.map(flag.description, (description) => `${description} (required)`) }
    : flag

const formatVariables = (names: ReadonlyArray<VariableName>): string => {
  const width = Math.max(...names.map((name) => name.length))
  const lines = names.map((name) => {
    const { description, defaultValue }: Variable = variables[name]
    const value = defaultValue === undefined ? "" : ` (default: ${defaultValue})`
    return `  ${name.padEnd(width)}    ${description.replaceAll("`", "")}${value}`
  })
  return ["ENVIRONMENT", ...lines].join("\n")
}

export const formatHelp = (doc: HelpDoc.HelpDoc): string => {
  const text = formatter.formatHelpDoc({ ...doc, flags: doc.flags.map(markRequired) })
  const names = Context.get(doc.annotations, Variables)
  return [
    // The formatter leaves no empty line between subcommands and examples.
    text.replace(/([^\n])\nEXAMPLES\n/, "$1\n\nEXAMPLES\n"),
    ...(names.length === 0 ? [] : [formatVariables(names)])
  ].join("\n\n")
}
