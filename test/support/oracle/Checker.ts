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

/** An observation that violates a rule. */
export interface Violation {
  readonly rule: Rule
  readonly observation: Observation
  /** The observed fact that is in no allowed state. */
  readonly observed: string
  /** The first and the last commit whose state was allowed. */
  readonly allowed: readonly [first: number, last: number]
  /** The latest commit whose state contains the observed fact, if any. */
  readonly shown: number | undefined
}

/** One fact of an observation. At least one allowed state must contain the fact. */
interface Fact {
  readonly name: string
  readonly observed: string
  readonly holdsIn: (state: State) => boolean
  /** Returns true if any workspace of a state contains the fact. */
  readonly isPartOf: (state: State) => boolean
  /**
   * The rule that is violated if no allowed state contains the fact. If undefined, the commits decide which rule is
   * violated (`generalRule`).
   */
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

/** Returns the facts of an observation. The service reads the key and the resource in separate statements. */
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
      // If no allowed state admits the key, the admission is a violation, and the parts are not checked.
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
 * Returns the violations of the rules. Each fact of a response must be true in a database state that was current at
 * some time in the allowed period. The period begins `boundMs` plus the response's `Age` before the request was sent,
 * and ends when the response arrives. The facts that a caller receives from one process for one target must never
 * become older from one response to the next.
 */
export const check = ({ commits, observations }: Timeline, boundMs: number): ReadonlyArray<Violation> => {
  /** The oldest commit that each caller may still see, by process, target and fact. */
  const seen = new Map<string, number>()
  const violations: Array<Violation> = []

  const checkFact = (observation: Observation, fact: Fact, first: number, last: number): void => {
    const chain = [observation.caller, observation.process, observation.target, fact.name].join("\n")
    const floor = observation.process === undefined ? first : (seen.get(chain) ?? first)
    const find = (from: number) =>
      commits.findIndex(({ state }, index) => index >= from && index <= last && fact.holdsIn(state))
    // Choose the oldest matching state: it leaves the most states allowed for the next response.
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
