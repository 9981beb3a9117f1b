import { median } from "./load.ts"

/** What a row has to reach, and what it aims at. */
export interface Goal {
  readonly rule: "at least" | "at most"
  readonly bound: number
  readonly aim: number
}

/** One row of the report. Without a goal it is there to be looked at. */
export interface Measurement {
  readonly title: string
  /** What the samples are in, such as `of bare`: the service's figure divided by the baseline's of the same round. */
  readonly unit: string
  readonly goal?: Goal
  readonly samples: ReadonlyArray<number>
  /** The figures behind it. */
  readonly detail?: Readonly<Record<string, number>>
  /** Why nothing was measured. */
  readonly fault?: string
}

/** A measurement as the report holds it; `met` and `aim_met` only where there is a goal. */
export interface Reported extends Omit<Measurement, "samples" | "goal"> {
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

const rounded = (value: number): number => Number(value.toPrecision(4))

const reaches = (rule: Goal["rule"], measured: number, value: number): boolean =>
  rule === "at least" ? measured >= value : measured <= value

export const reported = (group: string, measurement: Measurement): Reported => {
  const { samples, goal, detail, ...rest } = measurement
  const none = samples.length === 0
  const measured = none ? null : rounded(median(samples))
  return {
    group,
    ...rest,
    ...(goal === undefined
      ? {}
      : {
          [goal.rule === "at least" ? "at_least" : "at_most"]: goal.bound,
          aim: goal.aim,
          met: measured !== null && reaches(goal.rule, measured, goal.bound),
          aim_met: measured !== null && reaches(goal.rule, measured, goal.aim)
        }),
    measured,
    min: none ? null : rounded(Math.min(...samples)),
    max: none ? null : rounded(Math.max(...samples)),
    samples: samples.map(rounded),
    ...(detail === undefined
      ? {}
      : { detail: Object.fromEntries(Object.entries(detail).map(([name, value]) => [name, rounded(value)])) })
  }
}
