import type * as Command from "effect/cli/Command"

export const listSubcommands = (command: Command.Command.Any): ReadonlyArray<Command.Command.Any> =>
  command.subcommands.flatMap(({ commands }) => commands)

interface FoundCommand {
  readonly command: Command.Command.Any
  /** The names of the command's parents and of the command, without the root. */
  readonly path: ReadonlyArray<string>
  /** True if the next word should name a subcommand of `command`, but no subcommand has this name. */
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
