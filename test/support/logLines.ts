/** A log line in the format `json`. */
export interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

/** Returns the log lines of the output of a service. */
export const parseLogLines = (output: string): ReadonlyArray<LogLine> =>
  output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
