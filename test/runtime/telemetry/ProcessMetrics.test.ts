import { setTimeout } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import { measureProcess } from "../../../src/runtime/telemetry/ProcessMetrics.ts"

/** How long the event loop is blocked, in seconds, and a tolerance that a busy machine stays within. */
const blocked = 1
const slack = 0.3

const longest = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(({ id }) => id === "nodejs_eventloop_lag_max_seconds")
  assert(found?.type === "Gauge")
  return Number(found.state.value)
})

const blockEventLoop = Effect.promise(async () => {
  // The histogram takes its first sample a little after it is enabled.
  await setTimeout(50)
  const until = performance.now() + blocked * 1000
  while (performance.now() < until);
  await setTimeout(50)
})

it.effect("the event loop's delay covers the last complete 15 seconds, however often metrics are read", () =>
  Effect.gen(function* () {
    yield* measureProcess
    yield* blockEventLoop
    assert.approximately(yield* longest, blocked, slack)
    yield* TestClock.adjust("15 seconds")
    assert.approximately(yield* longest, blocked, slack)
    yield* Effect.promise(() => setTimeout(50))
    assert.approximately(yield* longest, blocked, slack)
    yield* TestClock.adjust("15 seconds")
    assert.isBelow(yield* longest, blocked - slack)
    yield* blockEventLoop
    assert.isBelow(yield* longest, blocked - slack)
    yield* TestClock.adjust("15 seconds")
    assert.approximately(yield* longest, blocked, slack)
  })
)
