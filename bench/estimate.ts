import { median } from "./load.ts"

/** The median of the rounds' ratios of this checkout's cost to the other's, with its 95 % confidence interval. */
export interface Estimate {
  readonly ratio: number
  readonly low: number
  readonly high: number
}

const maxProbability = 0.025

/**
 * Takes the interval from the ranks of the ratios, so that it assumes nothing about their distribution. Fewer than
 * six ratios determine no interval.
 */
export const estimate = (ratios: ReadonlyArray<number>): Estimate => {
  const sorted = ratios.toSorted((a, b) => a - b)
  const count = sorted.length
  /** How many ratios are left out at either end of the interval. */
  let outside = -1
  let binomial = 0.5 ** count
  /** The probability that at most `outside` + 1 of the ratios are less than the true median. */
  let probability = binomial
  while (probability <= maxProbability) {
    outside++
    binomial *= (count - outside) / (outside + 1)
    probability += binomial
  }
  return {
    ratio: median(sorted),
    low: outside < 0 ? 0 : sorted[outside]!,
    high: outside < 0 ? Number.POSITIVE_INFINITY : sorted[count - 1 - outside]!
  }
}

export type Verdict = "slower" | "unclear" | "ok"

/** The greatest ratio that is no regression. */
const maxRatio = 1.05

/**
 * A row is slower if at least one interval lies above the limit. It is ok if all medians and the intervals of the
 * precise estimates lie below the limit. The intervals of the noisy estimates, which depend on the other load of
 * the machine, may contain the limit.
 */
export const judge = (noisy: ReadonlyArray<Estimate>, precise: ReadonlyArray<Estimate>): Verdict => {
  const all = [...noisy, ...precise]
  if (all.some(({ low }) => low > maxRatio)) return "slower"
  return all.every(({ ratio }) => ratio <= maxRatio) && precise.every(({ high }) => high <= maxRatio)
    ? "ok"
    : "unclear"
}
