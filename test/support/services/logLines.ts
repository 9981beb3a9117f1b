/** A log line in the format `json`. */
export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

export const parseLogLines = (output: string): ReadonlyArray<LogLine> =>
  output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))

/** Returns the messages of the warnings and errors, in order. */
export const listWarnings = (output: string): ReadonlyArray<string> =>
  parseLogLines(output)
    .filter(({ level }) => /warn|error|fatal/.test(level))
    .map(({ msg }) => msg)
