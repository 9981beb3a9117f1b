import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { makeRepeatingLog } from "../../../src/application/observability/RepeatingLog.ts"

/** Makes a log that collects its messages. */
const collect = () => {
  const lines: Array<string> = []
  return { lines, log: makeRepeatingLog((message) => Effect.sync(() => void lines.push(message))) }
}

describe("makeRepeatingLog", () => {
  it.effect(
    "makeRepeatingLog logs a message immediately, and again every minute while callers report the message",
    () =>
      Effect.gen(function* () {
        const { lines, log } = collect()
        const counts: Array<number> = []
        for (let second = 0; second <= 150; second++) {
          yield* log("refused")
          if (second % 30 === 0) counts.push(lines.length)
          yield* TestClock.adjust("1 second")
        }
        assert.deepStrictEqual(counts, [1, 1, 2, 2, 3, 3])
      })
  )

  it.effect("makeRepeatingLog logs another message immediately", () =>
    Effect.gen(function* () {
      const { lines, log } = collect()
      const messages = ["refused", "no such database"]
      for (const message of [...messages, ...messages]) yield* log(message)
      assert.deepStrictEqual(lines, messages)
    })
  )

  it.effect("makeRepeatingLog logs at most 10 messages per minute when every message is different", () =>
    Effect.gen(function* () {
      const { lines, log } = collect()
      for (let n = 0; n < 100; n++) yield* log(`error ${n}`)
      assert.strictEqual(lines.length, 10)
      yield* TestClock.adjust("1 minute")
      for (let n = 0; n < 100; n++) yield* log(`error ${n}`)
      assert.strictEqual(lines.length, 20)
    })
  )
})
