import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import { makeRepeatingLog } from "../../../src/application/observability/RepeatingLog.ts"
import { makeStateLog } from "../../../src/application/observability/StateLog.ts"
import { makeTest } from "../../support/makeTest.ts"

const test = makeTest(it.effect)

test("makeRepeatingLog logs each message immediately and then once per minute, and at most 10 messages per minute", function* () {
  const lines: Array<string> = []
  const log = makeRepeatingLog((message) => Effect.sync(() => void lines.push(message)))
  for (let second = 0; second <= 150; second++) {
    yield* log("refused")
    if (second === 15) yield* log("no such database")
    yield* TestClock.adjust("1 second")
  }
  assert.deepStrictEqual(lines, ["refused", "no such database", "refused", "refused"])
  yield* TestClock.adjust("1 minute")
  for (let n = 0; n < 100; n++) yield* log(`error ${n}`)
  assert.strictEqual(lines.length, 4 + 10)
})

test("makeStateLog logs each change of state once, with the reason of the first failure", function* () {
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${message}`))
  const { up, down } = makeStateLog({ failed: "Redis failed", restored: "Redis restored" })
  const reports = [up, down("first"), down("second"), up, up, down()]
  yield* Effect.provide(Effect.all(reports), Logger.layer([logger]))
  assert.deepStrictEqual(lines, ["Warn: Redis failed: first", "Info: Redis restored", "Warn: Redis failed"])
})
