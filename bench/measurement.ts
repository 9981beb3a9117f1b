import { median } from "./load.ts"

/** The bound that a measurement must meet and the value it aims for. */
export interface Goal {
  readonly rule: "at least" | "at most"
  readonly bound: number
  readonly aim: number
}

/** One measurement of a scenario. A measurement without a goal is for information. */
export interface Measurement {
  readonly title: string
  /** The unit of the samples. `of bare` is the service's value divided by the baseline's in the same round. */
  readonly unit: string
  readonly goal?: Goal
  readonly samples: ReadonlyArray<number>
  /** The values from which the samples were computed. */
  readonly detail?: Readonly<Record<string, number>>
  /** Why the measurement failed. */
  readonly fault?: string
}

/** A measurement as the report contains it; `met` and `aim_met` are present only with a goal. */
export interface ReportRow extends Omit<Measurement, "samples" | "goal"> {
  readonly group: string
  readonly at_least?: number
  readonly at_most?: number
  readonly aim?: number
  readonly measured: number | null
  readonly min: number | null
  readonly max: number | null
  readonly samples: ReadonlyArray<number>
  readonly met?: boolean
  readonly aim_met?: boolean
}

export const atLeast = (bound: number, aim: number): Goal => ({ rule: "at least", bound, aim })
export const atMost = (bound: number, aim: number): Goal => ({ rule: "at most", bound, aim })

const round = (value: number): number => Number(value.toPrecision(4))

const reaches = (rule: Goal["rule"], measured: number, value: number): boolean =>
  rule === "at least" ? measured >= value : measured <= value

/** Converts a measurement to a row of the report. */
export const toReportRow = (group: string, measurement: Measurement): ReportRow => {
  const { samples, goal, detail, ...fields } = measurement
  const isEmpty = samples.length === 0
  const measured = isEmpty ? null : round(median(samples))
  return {
    group,
    ...fields,
    ...(goal === undefined
      ? {}
      : {
          [goal.rule === "at least" ? "at_least" : "at_most"]: goal.bound,
          aim: goal.aim,
          met: measured !== null && reaches(goal.rule, measured, goal.bound),
          aim_met: measured !== null && reaches(goal.rule, measured, goal.aim)
        }),
    measured,
    min: isEmpty ? null : round(Math.min(...samples)),
    max: isEmpty ? null : round(Math.max(...samples)),
    samples: samples.map(round),
    ...(detail === undefined
      ? {}
      : { detail: Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, round(value)])) })
  }
}

const formatGoal = ({ at_least, at_most, aim }: ReportRow): string =>
  aim === undefined ? "" : `${at_least === undefined ? `<= ${at_most}` : `>= ${at_least}`}, aim ${aim}`

const formatVerdict = ({ met, aim_met, fault }: ReportRow): string =>
  fault !== undefined ? "FAULT" : met === undefined ? "" : aim_met ? "aim" : met ? "met" : "MISSED"

/** Formats a row of the report as one line. */
export const formatRow = (row: ReportRow): string => {
  const { title, measured, min, max, unit, fault, samples } = row
  const spread = samples.length > 1 ? ` (${min}–${max})` : ""
  const value = fault ?? `${measured}${spread} ${unit}`
  return `${formatVerdict(row).padEnd(7)}${title.padEnd(52)}${value.padEnd(48)}${formatGoal(row)}`
}
