/** Returns the arguments before `--`, which may be flags. */
export const beforeOperands = (args: ReadonlyArray<string>): ReadonlyArray<string> =>
  args.includes("--") ? args.slice(0, args.indexOf("--")) : args

/** Returns true if a command line asks for JSON, even if the command line is wrong. */
export const isJsonRequested = (args: ReadonlyArray<string>): boolean =>
  beforeOperands(args).includes("--json")
