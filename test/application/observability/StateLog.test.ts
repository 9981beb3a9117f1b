import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { makeStateLog, type StateLog } from "../../../src/application/observability/StateLog.ts"

/** Runs an effect and returns the levels and messages that it logs. */
const collectLines = Effect.fnUntraced(function* (effect: Effect.Effect<unknown>) {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${message}`))
  yield* Effect.provide(effect, Logger.layer([logger]))
  return lines
})

const reportAll = ({ up, down }: StateLog, states: ReadonlyArray<string>) =>
  Effect.forEach(states, (state) => (state === "up" ? up : down(state)))

describe("makeStateLog", () => {
  it.effect("makeStateLog logs each change of state once, with the reason of the first failure", () =>
    Effect.gen(function* () {
      const stateLog = makeStateLog({ failed: "Redis failed", restored: "Redis restored" })
      const states = ["first", "second", "up", "up", "third", "fourth"]
      assert.deepStrictEqual(yield* collectLines(reportAll(stateLog, states)), [
        "Warn: Redis failed: first",
        "Info: Redis restored",
        "Warn: Redis failed: third"
      ])
    })
  )

  it.effect("makeStateLog logs nothing about a dependency that works from the start", () =>
    Effect.gen(function* () {
      const stateLog = makeStateLog({ failed: "Redis failed", restored: "Redis restored" })
      assert.deepStrictEqual(yield* collectLines(reportAll(stateLog, ["up", "up"])), [])
    })
  )

  it.effect(
    "if makeStateLog has no recovery message, it logs no recovery; if a failure has no reason, it logs the message alone",
    () =>
      Effect.gen(function* () {
        const stateLog = makeStateLog({ failed: "Redis failed" })
        const states = ["first", "up", "second"]
        assert.deepStrictEqual(yield* collectLines(reportAll(stateLog, states)), [
          "Warn: Redis failed: first",
          "Warn: Redis failed: second"
        ])
        yield* stateLog.up
        assert.deepStrictEqual(yield* collectLines(stateLog.down()), ["Warn: Redis failed"])
      })
  )
})
