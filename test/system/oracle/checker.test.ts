import { expect, it } from "vitest"
import { type Commit, check, type Observation } from "../../../bench/oracle/Checker.ts"

const boundMs = 3_000
const target = "/api/v1/prompts"

const commit = (time: number, content: string, admission: object = { workspace: "w" }): Commit => ({
  name: "",
  startedAt: time,
  endedAt: time,
  state: { admissions: [admission], contents: new Map([["w", new Map([[target, [content]]])]]) }
})
const commits = [
  commit(0, "a"),
  commit(10_000, "b"),
  commit(11_000, "c"),
  commit(20_000, "c", { rejection: "401" })
]

/** Makes an observation of a content, or of a rejection if the content is "401". */
const receive = (startedAt: number, content: string, process = "p", ageMs = 0): Observation => ({
  ...{ caller: "caller", key: 0, target, process, ageMs, startedAt, endedAt: startedAt + 5 },
  ...(content === "401" ? { rejection: content, parts: [] } : { rejection: undefined, parts: [content] })
})

it.each([
  ["the current contents", [receive(100, "a"), receive(10_500, "b"), receive(21_000, "401")], []],
  ["a content that was replaced within the bound", [receive(12_900, "a")], []],
  ["a content that was replaced within the bound plus its age", [receive(14_000, "a", "p", 2_000)], []],
  ["an older content of another process", [receive(12_000, "c"), receive(12_100, "b", "q")], []],
  ["a key that was revoked within the bound", [receive(22_900, "c")], []],
  ["a content that was replaced earlier", [receive(13_100, "a")], ["a"]],
  ["an older content than before", [receive(12_000, "c"), receive(12_100, "b")], ["b"]],
  ["a content that was not committed yet", [receive(5_000, "b")], ["b"]],
  ["a content that was never committed", [receive(5_000, "d")], ["d"]],
  ["a 404 for a prompt that exists", [receive(5_000, "404")], ["404"]],
  ["a rejection of a key that is valid", [receive(15_000, "401")], ["401"]],
  ["a content after a rejection", [receive(21_000, "401"), receive(21_100, "c")], ["the key is valid"]]
])(
  "the checker of the freshness oracle reports a response if and only if no allowed state matches the response: %s",
  (_, observations, facts) => {
    expect(check(commits, observations, boundMs).map(({ fact }) => fact)).toEqual(facts)
  }
)
