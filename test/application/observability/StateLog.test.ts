import { assert, it } from "@effect/vitest"
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

it.effect(
  "makeStateLog logs each change of state once, with the reason of the first failure, and nothing while all works",
  () =>
    Effect.gen(function* () {
      const stateLog = makeStateLog({ failed: "Redis failed", restored: "Redis restored" })
      const states = ["up", "first", "second", "up", "up", "third", "fourth"]
      assert.deepStrictEqual(yield* collectLines(reportAll(stateLog, states)), [
        "Warn: Redis failed: first",
        "Info: Redis restored",
        "Warn: Redis failed: third"
      ])
      const silent = makeStateLog({ failed: "Redis failed" })
      assert.deepStrictEqual(
        yield* collectLines(Effect.andThen(reportAll(silent, ["first", "up"]), silent.down())),
        ["Warn: Redis failed: first", "Warn: Redis failed"]
      )
    })
)
