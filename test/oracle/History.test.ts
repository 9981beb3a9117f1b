import { describe, expect, it } from "vitest"
import { describeDisturbance } from "../support/oracle/Disturbances.ts"
import { generateHistory } from "../support/oracle/History.ts"

const histories = Array.from({ length: 24 }, (_, index) => generateHistory(index + 1))

const withoutNumbers = (text: string) => text.replaceAll(/ \d+/g, "")

describe("generated histories", () => {
  it("the same seed makes the same history, another seed another one", () => {
    expect(generateHistory(7)).toEqual(generateHistory(7))
    expect(generateHistory(7)).not.toEqual(generateHistory(8))
  })

  it("no two histories share an id", () => {
    const ids = histories.flatMap(({ world: { workspaces, users, keys, prompts, fragments } }) => [
      ...workspaces,
      ...users,
      ...keys.flatMap(({ id, plaintext }) => [id, plaintext]),
      ...prompts,
      ...fragments
    ])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it("the 24 histories of the tests contain every kind of change and of disturbance", () => {
    const changes = histories.flatMap(({ steps }) => steps.map(({ change }) => withoutNumbers(change.name)))
    expect([...new Set(changes)].toSorted()).toMatchInlineSnapshot(`
      [
        "add a version to prompt",
        "archive prompt, or restore it from the archive",
        "bind other fragments to prompt",
        "delete key",
        "delete prompt",
        "delete prompt and insert it again",
        "edit everything",
        "edit fragment",
        "edit prompt",
        "edit prompt, its bindings and all fragments",
        "insert the missing prompts",
        "move fragment to workspace",
        "move key to workspace",
        "move prompt to workspace",
        "restore all keys and workspaces",
        "revoke key",
        "swap the prompts and fragments of workspace and the next one",
        "take key out",
        "user must reset the password",
        "workspace gets billing status active",
        "workspace gets billing status disputed",
        "workspace gets billing status over_limit",
        "workspace gets billing status past_due",
        "workspace gets tier free",
        "workspace gets tier solo",
        "workspace gets tier team",
      ]
    `)
    const disturbances = histories.flatMap(({ disturbances }) =>
      disturbances.map((disturbance) => withoutNumbers(describeDisturbance(disturbance)))
    )
    expect([...new Set(disturbances)].toSorted()).toMatchInlineSnapshot(`
      [
        "close the feed of instance",
        "delay reads by ms",
        "delay the standby by ms",
        "freeze the standby for ms",
        "restart PgBouncer",
        "restart instance with SIGKILL",
        "restart the standby",
        "rolling restart",
        "silence the feed of instance",
      ]
    `)
    expect(new Set(histories.flatMap(({ steps }) => steps.map(({ end }) => end)))).toEqual(
      new Set(["commit", "rollback"])
    )
  })
})
