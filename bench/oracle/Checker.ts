import type { Parts, State } from "./State.ts"

/** A committed transaction. Times are values of `performance.now()`. */
export interface Commit {
  readonly name: string
  /** A time shortly before COMMIT was sent. No reader sees the state earlier. */
  readonly startedAt: number
  /** A time shortly after COMMIT was acknowledged. Every read that starts after this time sees the state. */
  readonly endedAt: number
  readonly state: State
}

/** A request and its response. The requests of one caller follow one another. */
export interface Observation {
  readonly caller: string
  /** The index of the caller's key. */
  readonly key: number
  /** The process that responded. Undefined if the process was replaced during the request. */
  readonly process: string | undefined
  readonly target: string
  readonly startedAt: number
  readonly endedAt: number
  /** The `Age` of a response that was served without the database, in milliseconds. 0 for every other response. */
  readonly ageMs: number
  /** The status and the message with which the key was rejected. */
  readonly rejection: string | undefined
  /** The parts of the content. A rejection has no parts. */
  readonly parts: Parts
}

/** An observation with a fact that no allowed state contains. */
interface Violation {
  readonly observation: Observation
  readonly fact: string
  /** The first and the last commit whose state was allowed. */
  readonly allowed: readonly [first: number, last: number]
}

interface Fact {
  readonly name: string
  readonly holdsIn: (state: State) => boolean
}

/** Returns the facts of an observation. The service reads the key and the parts of a resource in separate statements. */
const listFacts = (
  { key, target, rejection, parts }: Observation,
  allowed: ReadonlyArray<Commit>
): ReadonlyArray<Fact> => {
  const workspaces = new Set(allowed.map(({ state }) => state.admissions[key]!.workspace))
  return [
    {
      name: rejection ?? "the key is valid",
      holdsIn: ({ admissions }) => admissions[key]!.rejection === rejection
    },
    ...parts.map(
      (part, index): Fact => ({
        name: part,
        holdsIn: ({ contents }) =>
          [...contents].some(
            ([workspace, targets]) => workspaces.has(workspace) && targets.get(target)![index] === part
          )
      })
    )
  ]
}

/**
 * Returns the violations of the rules. Each fact of a response must be true in a database state that was current at
 * some time in the allowed period. The period begins `boundMs` plus the response's `Age` before the request was sent,
 * and ends when the response arrives. The facts that a caller receives from one process for one target must never
 * become older from one response to the next.
 */
export const check = (
  commits: ReadonlyArray<Commit>,
  observations: ReadonlyArray<Observation>,
  boundMs: number
): ReadonlyArray<Violation> => {
  /** The oldest commit whose state each caller may still see, by process, target and fact. */
  const seen = new Map<string, number>()
  const violations: Array<Violation> = []
  for (const observation of observations) {
    const { caller, process, target, startedAt, endedAt, ageMs } = observation
    const start = commits.findLastIndex((commit) => commit.endedAt <= startedAt - boundMs - ageMs)
    const last = commits.findLastIndex((commit) => commit.startedAt <= endedAt)
    const facts = listFacts(observation, commits.slice(Math.max(0, start), last + 1))
    for (const [index, { name, holdsIn }] of facts.entries()) {
      const chain = [caller, process, target, index].join("\n")
      const first = Math.max(0, start, process === undefined ? 0 : (seen.get(chain) ?? 0))
      // Chooses the oldest matching state, because this state allows the most states for the next response.
      const found = commits.findIndex(({ state }, at) => at >= first && at <= last && holdsIn(state))
      if (found !== -1) seen.set(chain, found)
      else violations.push({ observation, fact: name, allowed: [first, last] })
    }
  }
  return violations
}
