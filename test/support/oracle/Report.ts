import type { Violation } from "./Checker.ts"
import type { RunResult } from "./Run.ts"

/** How many violations a report shows. */
const maxViolations = 3

/** Describes one violation and the history. Times are relative to the first commit. */
const describeViolation = (
  { commits, disturbed }: RunResult,
  { observation, fact, allowed: [first, last], shown }: Violation
): string => {
  const origin = commits[0]!.endedAt
  const span = ({ startedAt, endedAt }: { readonly startedAt: number; readonly endedAt: number }) =>
    `${(startedAt - origin).toFixed(0).padStart(7)} to ${(endedAt - origin).toFixed(0).padStart(7)} ms`
  const { caller, process, target, rejection, parts } = observation
  return [
    `${caller} (${process ?? "a process that was replaced"})`,
    `  ${span(observation)}  GET ${target}`,
    `  received: ${rejection ?? parts.join(" | ")}`,
    `  not explained: ${fact}`,
    `  allowed: commits ${first} to ${last}; shown by commit ${shown}`,
    ...commits.map((commit, index) => `  ${span(commit)}  commit ${index}: ${commit.name}`),
    ...disturbed.map((each) => `  ${span(each)}  ${each.name}`)
  ].join("\n")
}

/** Describes the violations of a run, and how to repeat the run. Returns an empty text if there are no violations. */
export const report = (result: RunResult): string => {
  const { seed, violations } = result
  if (violations.length === 0) return ""
  return [
    `Seed ${seed}: ${violations.length} violations. Repeat with: npm run oracle -- --seed ${seed}`,
    ...violations.slice(0, maxViolations).map((violation) => describeViolation(result, violation))
  ].join("\n\n")
}

/** Summarizes a run in one line. */
export const summarize = ({ seed, commits, disturbed, observations, violations }: RunResult): string =>
  [
    `seed ${seed}: ${commits.length} commits`,
    `${observations.length} responses, ${observations.filter(({ ageMs }) => ageMs > 0).length} without the database`,
    ...disturbed.map(({ name }) => name),
    `${violations.length} violations`
  ].join("; ")
