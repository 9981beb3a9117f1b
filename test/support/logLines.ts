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
