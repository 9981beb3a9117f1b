/** The options that several benchmarks share, for `parseArgs`. */
export const sharedOptions = {
  only: { type: "string" },
  seconds: { type: "string" },
  rounds: { type: "string" },
  help: { type: "boolean", default: false }
} as const

interface SharedValues {
  readonly only?: string | undefined
  readonly seconds?: string | undefined
  readonly rounds?: string | undefined
  readonly help: boolean
}

export interface Usage {
  readonly help: string
  readonly groups: ReadonlyArray<string>
  readonly maxRounds: number
}

/**
 * Returns the parsed arguments of the command line with the values of the shared options, which are undefined where
 * they are not given. Prints the help and exits if it is requested; exits with 2 if an argument is wrong, or if
 * `parse` throws.
 */
export const readOptions = <Parsed extends { readonly values: SharedValues }>(
  { help, groups, maxRounds }: Usage,
  parse: () => Parsed
) => {
  const exitWithUsage = (message: string): never => {
    console.error(`${message}\n${help}`)
    process.exit(2)
  }
  let parsed: Parsed
  try {
    parsed = parse()
  } catch (error) {
    return exitWithUsage((error as Error).message)
  }
  const { values } = parsed
  if (values.help) {
    console.log(help)
    process.exit(0)
  }
  const only = values.only?.split(",") ?? groups
  const unknown = only.find((name) => !groups.includes(name))
  if (unknown !== undefined) exitWithUsage(`there is no group ${unknown}`)
  const toNumber = (text: string | undefined) => (text === undefined ? undefined : Number(text))
  const [seconds, rounds] = [toNumber(values.seconds), toNumber(values.rounds)]
  if (seconds !== undefined && !(seconds > 0 && seconds <= 60))
    exitWithUsage("--seconds must be a number up to 60")
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds >= 1 && rounds <= maxRounds))
    exitWithUsage(`--rounds must be 1 to ${maxRounds}`)
  return { ...parsed, only, seconds, rounds }
}
