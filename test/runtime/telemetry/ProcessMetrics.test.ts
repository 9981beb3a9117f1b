import { setTimeout } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import { measureProcess } from "../../../src/runtime/telemetry/ProcessMetrics.ts"

/** How long the event loop is held up, in seconds, and what a busy machine alone would not make of it. */
const held = 1
const slack = 0.3

const longest = Effect.map(Metric.snapshot, (metrics) => {
  const found = metrics.find(({ id }) => id === "nodejs_eventloop_lag_max_seconds")
  assert(found?.type === "Gauge")
  return Number(found.state.value)
})

const holdUp = Effect.promise(async () => {
  // The first sample begins a little later than the measuring.
  await setTimeout(50)
  const until = performance.now() + held * 1000
  while (performance.now() < until);
  await setTimeout(50)
})

it.effect("the event loop's delay stands for the last whole 15 seconds, whoever reads it and how often", () =>
  Effect.gen(function* () {
    yield* measureProcess
    yield* holdUp
    assert.approximately(yield* longest, held, slack)
    yield* TestClock.adjust("15 seconds")
    assert.approximately(yield* longest, held, slack)
    yield* Effect.promise(() => setTimeout(50))
    assert.approximately(yield* longest, held, slack)
    yield* TestClock.adjust("15 seconds")
    assert.isBelow(yield* longest, held - slack)
    yield* holdUp
    assert.isBelow(yield* longest, held - slack)
    yield* TestClock.adjust("15 seconds")
    assert.approximately(yield* longest, held, slack)
  })
)
