import { median } from "./load.ts"

/** The bound that a measurement must meet, and the better value that the project aims for. */
export interface Goal {
  readonly rule: "at least" | "at most"
  readonly bound: number
  readonly aim: number
}

/** One measurement of a scenario. A measurement without a goal is only informative. */
export interface Measurement {
  readonly title: string
  /** The unit of the samples. With `of bare`, each sample is divided by the bare server's value in the same round. */
  readonly unit: string
  readonly goal?: Goal
  readonly samples: ReadonlyArray<number>
  /** The values from which the samples were computed. */
  readonly detail?: Readonly<Record<string, number>>
  /** Why the measurement failed. */
  readonly fault?: string
}

type Verdict = "aim" | "met" | "MISSED" | "FAULT" | ""

/** A measurement as the report contains it. */
export interface ReportRow extends Measurement {
  readonly group: string
  readonly verdict: Verdict
  /** The median of the samples. `min` and `max` are the extreme samples. All three are null if there are no samples. */
  readonly measured: number | null
  readonly min: number | null
  readonly max: number | null
}

export const atLeast = (bound: number, aim: number): Goal => ({ rule: "at least", bound, aim })
export const atMost = (bound: number, aim: number): Goal => ({ rule: "at most", bound, aim })

const round = (value: number): number => Number(value.toPrecision(4))

const judge = ({ goal, fault, samples }: Measurement): Verdict => {
  if (fault !== undefined) return "FAULT"
  if (goal === undefined) return ""
  const reaches = (value: number) =>
    goal.rule === "at least" ? median(samples) >= value : median(samples) <= value
  return reaches(goal.aim) ? "aim" : reaches(goal.bound) ? "met" : "MISSED"
}

export const toReportRow = (group: string, measurement: Measurement): ReportRow => {
  const { samples, detail = {} } = measurement
  const summarize = (reduce: (values: ReadonlyArray<number>) => number) =>
    samples.length === 0 ? null : round(reduce(samples))
  return {
    group,
    ...measurement,
    verdict: judge(measurement),
    measured: summarize(median),
    min: summarize((values) => Math.min(...values)),
    max: summarize((values) => Math.max(...values)),
    samples: samples.map(round),
    detail: Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, round(value)]))
  }
}

/** Formats a row of the report as one line. */
export const formatRow = ({ title, goal, verdict, measured, min, max, unit, fault, samples }: ReportRow) => {
  const spread = samples.length > 1 ? ` (${min}–${max})` : ""
  const value = fault ?? `${measured}${spread} ${unit}`
  const bound = goal === undefined ? "" : `${goal.rule} ${goal.bound}, aim ${goal.aim}`
  return `${verdict.padEnd(7)}${title.padEnd(52)}${value.padEnd(48)}${bound}`
}
