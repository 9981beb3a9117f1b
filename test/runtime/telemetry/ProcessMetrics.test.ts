import { setTimeout } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import { measureProcess } from "../../../src/runtime/telemetry/ProcessMetrics.ts"
import { makeTest } from "../../support/makeTest.ts"

const blockedSeconds = 1

const readMaxLag = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(({ id }) => id === "prompt_retrieval_nodejs_eventloop_lag_max_seconds")
  assert(found?.type === "Gauge")
  return Number(found.state.value)
})

const blockEventLoop = Effect.promise(async () => {
  // The histogram takes its first sample shortly after its start.
  await setTimeout(50)
  const end = performance.now() + blockedSeconds * 1000
  while (performance.now() < end);
  await setTimeout(50)
})

makeTest(it.effect)(
  "the metrics of the event loop delay cover the last complete period of 15 s, however often the metrics are read",
  function* () {
    yield* measureProcess
    yield* blockEventLoop
    const first = yield* readMaxLag
    assert.isAbove(first, blockedSeconds / 2)
    yield* TestClock.adjust("15 seconds")
    const complete = yield* readMaxLag
    assert.isAtLeast(complete, first)
    yield* Effect.promise(() => setTimeout(50))
    assert.strictEqual(yield* readMaxLag, complete)
    yield* TestClock.adjust("15 seconds")
    assert.notStrictEqual(yield* readMaxLag, complete)
  }
)
