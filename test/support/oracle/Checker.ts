import {
  type Admission,
  type Commit,
  notFound,
  type Observation,
  type Parts,
  type State,
  type Timeline
} from "./Timeline.ts"

/** The rules that an observation can violate. */
export type Rule =
  | "stale"
  | "time goes backward"
  | "no committed state"
  | "other workspace"
  | "not committed yet"
  | "false 404"
  | "false rejection"
  | "rejected key reads"
  | "unexpected response"

/** An observation that no state explains. */
export interface Violation {
  readonly rule: Rule
  readonly observation: Observation
  /** What the observation shows instead of an allowed state. */
  readonly observed: string
  /** The first and the last commit whose state was allowed. */
  readonly allowed: readonly [first: number, last: number]
  /** The latest commit whose state the observation shows, if any. */
  readonly shown: number | undefined
}

/** One thing that an observation shows, which must come from one allowed state. */
interface Fact {
  readonly name: string
  readonly observed: string
  readonly holdsIn: (state: State) => boolean
  /** Returns true if a caller with another key may have seen the fact in a state. */
  readonly isPartOf: (state: State) => boolean
  /** The rule that is violated if the fact holds in no allowed state, instead of one of the general rules. */
  readonly rule: Rule | undefined
}

const isOfWorkspace = (
  admission: Admission
): admission is Extract<Admission, { readonly workspace: string }> => "workspace" in admission

const makeAdmissionFact = (
  key: number,
  observed: string,
  rule: Rule,
  isShownBy: (admission: Admission) => boolean
): Fact => {
  const holdsIn = ({ admissions }: State) => isShownBy(admissions[key]!)
  return { name: "admission", observed, rule, holdsIn, isPartOf: holdsIn }
}

/** Returns what an observation shows. A response reads the key first and the resource in another statement. */
const listFacts = (
  { key, target, outcome }: Observation,
  allowed: ReadonlyArray<Commit>
): ReadonlyArray<Fact> => {
  switch (outcome._tag) {
    case "Unavailable":
    case "Unexpected":
      return []
    case "Rejection":
      return [
        makeAdmissionFact(
          key,
          outcome.reason,
          "false rejection",
          (admission) => !isOfWorkspace(admission) && admission.rejection === outcome.reason
        )
      ]
    case "Content": {
      const workspaces = new Set(
        allowed
          .map(({ state }) => state.admissions[key]!)
          .filter(isOfWorkspace)
          .map(({ workspace }) => workspace)
      )
      const admission = makeAdmissionFact(key, "the key is admitted", "rejected key reads", isOfWorkspace)
      // The parts of a response to a key that may not read anything say nothing more.
      if (workspaces.size === 0) return [admission]
      const { parts } = outcome
      const makePartFact = (part: string, index: number): Fact => {
        const isShownBy = (own: Parts = notFound) => own.length === parts.length && own[index] === part
        return {
          name: `part ${index}`,
          observed: part,
          rule: part === notFound[0] ? "false 404" : undefined,
          holdsIn: ({ contents }) =>
            [...workspaces].some((workspace) => isShownBy(contents.get(workspace)?.get(target))),
          isPartOf: ({ contents }) => [...contents.values()].some((targets) => isShownBy(targets.get(target)))
        }
      }
      return [admission, ...parts.map(makePartFact)]
    }
  }
}

/**
 * Returns every observation that violates a rule. A response to a request that was sent at t shows, of each thing, a
 * state that was current at t - `boundMs` or later, or as much earlier as the response states as its age. What a
 * caller receives from one process for one target never gets older.
 */
export const check = ({ commits, observations }: Timeline, boundMs: number): ReadonlyArray<Violation> => {
  /** The commit whose state each caller has seen of each fact. */
  const seen = new Map<string, number>()
  const violations: Array<Violation> = []

  const checkFact = (observation: Observation, fact: Fact, first: number, last: number): void => {
    const chain = [observation.caller, observation.process, observation.target, fact.name].join("\n")
    const floor = observation.process === undefined ? first : (seen.get(chain) ?? first)
    const find = (from: number) =>
      commits.findIndex(({ state }, index) => index >= from && index <= last && fact.holdsIn(state))
    // The oldest state that explains the response leaves the most room for the next one.
    const found = find(Math.max(first, floor))
    if (found !== -1) {
      if (observation.process !== undefined) seen.set(chain, found)
      return
    }
    const shown = commits.findLastIndex(({ state }) => fact.isPartOf(state))
    const generalRule = (): Rule => {
      if (find(first) !== -1) return "time goes backward"
      if (shown === -1) return "no committed state"
      if (shown > last) return "not committed yet"
      return shown < first ? "stale" : "other workspace"
    }
    const rule = generalRule()
    violations.push({
      rule: rule === "time goes backward" ? rule : (fact.rule ?? rule),
      observation,
      observed: fact.observed,
      allowed: [first, last],
      shown: shown === -1 ? undefined : shown
    })
  }

  for (const observation of observations) {
    const since = observation.startedAt - boundMs - observation.ageMs
    const first = Math.max(
      0,
      commits.findLastIndex(({ endedAt }) => endedAt <= since)
    )
    const last = commits.findLastIndex(({ startedAt }) => startedAt <= observation.endedAt)
    if (observation.outcome._tag === "Unexpected") {
      violations.push({
        rule: "unexpected response",
        observation,
        observed: observation.outcome.reason,
        allowed: [first, last],
        shown: undefined
      })
    }
    for (const fact of listFacts(observation, commits.slice(first, last + 1)))
      checkFact(observation, fact, first, last)
  }
  return violations
}
