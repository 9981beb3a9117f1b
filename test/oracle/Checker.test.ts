import { describe, expect, it } from "vitest"
import { check, type Rule } from "../support/oracle/Checker.ts"
import {
  type Admission,
  type Commit,
  notFound,
  type Observation,
  type Outcome,
  type Parts,
  type State
} from "../support/oracle/Timeline.ts"

const boundMs = 100
const revoked = "401 API key has been revoked"

/** A state in which the one key reads the workspace `w`, whose one prompt `/p` and list `/l` have these parts. */
const state = (
  prompt: Parts | undefined,
  admission: Admission = { workspace: "w" },
  list: Parts = []
): State => ({
  admissions: [admission],
  contents: new Map([
    ["w", new Map([["/l", list], ...(prompt === undefined ? [] : [["/p", prompt] as const])])],
    ["v", new Map([["/p", ["of v"]]])]
  ])
})

/** Commits the states one after another: state n takes effect between 1000 n and 1000 n + 10. */
const commitAll = (...states: ReadonlyArray<State>): ReadonlyArray<Commit> =>
  states.map((state, index) => ({
    name: `commit ${index}`,
    startedAt: 1_000 * index,
    endedAt: 1_000 * index + 10,
    state
  }))

const content = (...parts: Parts): Outcome => ({ _tag: "Content", parts })

/** A request that was sent at one time and responded to at another one. */
const observe = (
  startedAt: number,
  endedAt: number,
  outcome: Outcome,
  overrides: Partial<Observation> = {}
): Observation => ({
  caller: "caller",
  key: 0,
  process: "process",
  target: "/p",
  startedAt,
  endedAt,
  ageMs: 0,
  outcome,
  ...overrides
})

const findRules = (
  commits: ReadonlyArray<Commit>,
  ...observations: ReadonlyArray<Observation>
): ReadonlyArray<Rule> => check({ commits, disturbed: [], observations }, boundMs).map(({ rule }) => rule)

describe("the checker of the freshness oracle", () => {
  const edits = commitAll(state(["a"]), state(["b"]), state(["c"]))

  it("accepts the current state, and the state before a commit until the bound has passed", () => {
    expect(findRules(edits, observe(500, 501, content("a")))).toEqual([])
    expect(findRules(edits, observe(1_109, 1_120, content("a")))).toEqual([])
  })

  it("reports a state that was replaced longer than the bound before the request", () => {
    expect(findRules(edits, observe(1_110, 1_120, content("a")))).toEqual(["stale"])
  })

  it("accepts either state while a commit is in flight, and the states during a slow request", () => {
    expect(findRules(edits, observe(990, 1_001, content("b")))).toEqual([])
    expect(findRules(edits, observe(1_500, 2_500, content("c")))).toEqual([])
    expect(findRules(edits, observe(1_500, 2_500, content("b")))).toEqual([])
  })

  it("reports a state that was not committed yet", () => {
    expect(findRules(edits, observe(500, 999, content("b")))).toEqual(["not committed yet"])
  })

  it("allows the age that a response states, and no more", () => {
    expect(findRules(edits, observe(2_500, 2_501, content("b"), { ageMs: 1_000 }))).toEqual([])
    expect(findRules(edits, observe(2_500, 2_501, content("a"), { ageMs: 1_000 }))).toEqual(["stale"])
  })

  it("reports a caller that sees an older state than before from the same process, even within the bound", () => {
    const [first, second] = [observe(1_020, 1_021, content("b")), observe(1_030, 1_031, content("a"))]
    expect(findRules(edits, first, second)).toEqual(["time goes backward"])
    for (const other of [{ caller: "other" }, { process: "other" }])
      expect(findRules(edits, first, { ...second, ...other })).toEqual([])
  })

  it("does not compare responses of a process that was replaced meanwhile", () => {
    const first = observe(1_020, 1_021, content("b"), { process: undefined })
    expect(findRules(edits, first, { ...first, outcome: content("a") })).toEqual([])
    expect(findRules(edits, observe(1_500, 1_501, content("a"), { process: undefined }))).toEqual(["stale"])
  })

  it("accepts a state that returns", () => {
    const commits = commitAll(state(["a"]), state(["b"]), state(["a"]))
    expect(
      findRules(
        commits,
        observe(500, 501, content("a")),
        observe(1_500, 1_501, content("b")),
        observe(2_500, 2_501, content("a"))
      )
    ).toEqual([])
  })

  it("reports a response that mixes two states", () => {
    const commits = commitAll(state(["prompt a, fragment a"]), state(["prompt b, fragment b"]))
    expect(findRules(commits, observe(1_020, 1_030, content("prompt b, fragment a")))).toEqual([
      "no committed state"
    ])
  })

  it("accepts the items and the total of a list from two states of the window, and from no other", () => {
    const admission = { workspace: "w" }
    const commits = commitAll(
      state(undefined, admission, ["items a", "total a"]),
      state(undefined, admission, ["items b", "total b"])
    )
    const list = content("items b", "total a")
    expect(findRules(commits, observe(1_020, 1_030, list, { target: "/l" }))).toEqual([])
    expect(findRules(commits, observe(1_500, 1_501, list, { target: "/l" }))).toEqual(["stale"])
  })

  it("reports a 404 for a prompt that existed all the time", () => {
    expect(findRules(edits, observe(1_500, 1_501, content(...notFound)))).toEqual(["false 404"])
    const deletion = commitAll(state(["a"]), state(undefined))
    expect(findRules(deletion, observe(1_500, 1_501, content(...notFound)))).toEqual([])
    expect(findRules(deletion, observe(1_500, 1_501, content("a")))).toEqual(["stale"])
  })

  it("reports a rejection of a key that was valid all the time, and another rejection than PostgreSQL's", () => {
    const rejection: Outcome = { _tag: "Rejection", reason: revoked }
    expect(findRules(edits, observe(1_500, 1_501, rejection))).toEqual(["false rejection"])
    const revocation = commitAll(state(["a"]), state(["a"], { rejection: revoked }))
    expect(findRules(revocation, observe(1_500, 1_501, rejection))).toEqual([])
    expect(findRules(revocation, observe(1_500, 1_501, { ...rejection, reason: "402 Unpaid" }))).toEqual([
      "false rejection"
    ])
  })

  it("reports a revoked key that reads after the bound", () => {
    const revocation = commitAll(state(["a"]), state(["a"], { rejection: revoked }))
    expect(findRules(revocation, observe(1_109, 1_110, content("a")))).toEqual([])
    expect(findRules(revocation, observe(1_110, 1_111, content("a")))).toEqual(["rejected key reads"])
    expect(findRules(revocation, observe(1_110, 1_111, content(...notFound)))).toEqual(["rejected key reads"])
  })

  it("reports content of a workspace that the key has left longer than the bound ago", () => {
    const move = commitAll(state(["a"]), state(["a"], { workspace: "v" }))
    expect(findRules(move, observe(1_109, 1_110, content("a")))).toEqual([])
    expect(findRules(move, observe(1_500, 1_501, content("of v")))).toEqual([])
    expect(findRules(move, observe(1_500, 1_501, content("a")))).toEqual(["other workspace"])
  })

  it("reports every unexpected response, and no response that is missing", () => {
    expect(findRules(edits, observe(500, 501, { _tag: "Unexpected", reason: "500" }))).toEqual([
      "unexpected response"
    ])
    expect(findRules(edits, observe(500, 501, { _tag: "Unavailable", reason: "503" }))).toEqual([])
  })
})
