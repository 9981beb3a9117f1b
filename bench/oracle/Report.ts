import type { RunResult } from "./Run.ts"

/** How many violations a report shows. */
const maxViolations = 3

/**
 * Describes the first violations of a run and its history, and how to repeat the run. Times are relative to the first
 * commit. Returns an empty text if there are no violations.
 */
export const report = ({ seed, commits, disturbed, violations }: RunResult): string => {
  if (violations.length === 0) return ""
  const toMs = (time: number) => (time - commits[0]!.endedAt).toFixed(0).padStart(7)
  const describe = (span: { readonly startedAt: number; readonly endedAt: number }, text: string) =>
    `  ${toMs(span.startedAt)} to ${toMs(span.endedAt)} ms  ${text}`
  return [
    `Seed ${seed}: ${violations.length} violations. Repeat with: npm run oracle -- --seed ${seed}`,
    ...violations
      .slice(0, maxViolations)
      .flatMap(({ observation, fact, allowed: [first, last] }) => [
        `${observation.caller} (${observation.process ?? "a process that was replaced"})`,
        describe(observation, `GET ${observation.target}`),
        `  received: ${observation.rejection ?? observation.parts.join(" | ")}`,
        `  not explained by commits ${first} to ${last}: ${fact}`
      ]),
    ...commits.map((commit, index) => describe(commit, `commit ${index}: ${commit.name}`)),
    ...disturbed.map((each) => describe(each, each.name))
  ].join("\n")
}

/** Summarizes a run in one line. */
export const summarize = ({ seed, commits, disturbed, observations, violations }: RunResult): string =>
  [
    `seed ${seed}: ${commits.length} commits`,
    `${observations.length} responses, ${observations.filter(({ ageMs }) => ageMs > 0).length} without the database`,
    ...disturbed.map(({ name }) => name),
    `${violations.length} violations`
  ].join("; ")
