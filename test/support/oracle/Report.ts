import type { Violation } from "./Checker.ts"
import type { RunResult } from "./Run.ts"
import type { Outcome } from "./Timeline.ts"

/** How many violations a report shows, and how many commits before and after the allowed commits. */
const maxViolations = 3
const nearbyCommits = 3

const describeOutcome = (outcome: Outcome): string =>
  outcome._tag === "Content" ? outcome.parts.join(" | ") : outcome.reason

/** Describes one violation and its part of the history. Times are relative to the first commit. */
const describeViolation = (
  { timeline: { commits, disturbed } }: RunResult,
  { rule, observation, observed, allowed: [first, last], shown }: Violation
): string => {
  const origin = commits[0]!.endedAt
  const span = ({ startedAt, endedAt }: { readonly startedAt: number; readonly endedAt: number }) =>
    `${(startedAt - origin).toFixed(0).padStart(7)} to ${(endedAt - origin).toFixed(0).padStart(7)} ms`
  const lines = commits.flatMap((commit, index) => {
    const isNear = index >= Math.min(first, shown ?? first) - nearbyCommits && index <= last + nearbyCommits
    const mark = index === shown ? "shown" : index >= first && index <= last ? "allowed" : ""
    return isNear ? [`  ${span(commit)}  commit ${index}: ${commit.name}  ${mark}`] : []
  })
  return [
    `${rule}: ${observation.caller}${observation.process === undefined ? "" : ` (${observation.process})`}`,
    `  ${span(observation)}  GET ${observation.target}`,
    `  received: ${describeOutcome(observation.outcome)}`,
    `  not explained: ${observed}`,
    ...lines,
    ...disturbed.map((each) => `  ${span(each)}  ${each.name}`)
  ].join("\n")
}

/** Describes the violations of a run, and how to repeat the run. Returns an empty text if there are no violations. */
export const report = (result: RunResult): string => {
  const { history, violations } = result
  if (violations.length === 0) return ""
  return [
    `Seed ${history.seed}: ${violations.length} violations. Repeat with: npm run oracle -- --seed ${history.seed}`,
    ...violations.slice(0, maxViolations).map((violation) => describeViolation(result, violation))
  ].join("\n\n")
}

/** Summarizes a run in one line. */
export const summarize = ({ history, timeline, violations }: RunResult): string => {
  const { commits, disturbed, observations } = timeline
  const count = (tag: Outcome["_tag"]) => observations.filter(({ outcome }) => outcome._tag === tag).length
  return [
    `seed ${history.seed}: ${commits.length} commits`,
    `${observations.length} responses (${count("Content")} with content, ${count("Rejection")} rejections, ${count("Unavailable")} unavailable)`,
    `${disturbed.map(({ name }) => name).join(", ")}`,
    `${violations.length} violations`
  ].join("; ")
}
