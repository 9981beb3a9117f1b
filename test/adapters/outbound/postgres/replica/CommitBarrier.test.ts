import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Row } from "../../../../../src/adapters/outbound/postgres/connection/Query.ts"
import { CommitBarrier } from "../../../../../src/adapters/outbound/postgres/replica/CommitBarrier.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"

/** Makes a barrier on a primary on which `committing()` holds the lock. */
const makeBarrier = (committing: () => string | undefined, timeoutMs = 30_000) => {
  let queries = 0
  const barrier = new CommitBarrier(
    () =>
      Effect.delay(
        Effect.sync(() => {
          queries++
          const id = committing()
          return id === undefined ? [] : [{ id } as unknown as Row]
        }),
        1
      ),
    timeoutMs
  )
  return { barrier, countQueries: () => queries }
}

describe("CommitBarrier", () => {
  it.live("callers that wait at the same time share a proof", () =>
    Effect.gen(function* () {
      const { barrier, countQueries } = makeBarrier(() => undefined)
      const at = performance.now()
      yield* Effect.all(
        Array.from({ length: 100 }, () => barrier.await(at)),
        { concurrency: "unbounded" }
      )
      assert.isAtMost(countQueries(), 2)
      assert.isAbove(barrier.provenAt, at)
      yield* barrier.await(at)
      assert.isAtMost(countQueries(), 2)
    })
  )

  it.live("waits until the transaction that commits has ended, whether or not another one follows", () =>
    Effect.gen(function* () {
      for (const next of [undefined, "2/2"]) {
        let committing: string | undefined = "1/1"
        const { barrier } = makeBarrier(() => committing)
        const waiting = yield* Effect.forkChild(barrier.await(performance.now()))
        yield* Effect.sleep(50)
        assert.strictEqual(barrier.provenAt, Number.NEGATIVE_INFINITY)
        committing = next
        yield* Fiber.join(waiting)
      }
    })
  )

  it.live("fails while a transaction does not end", () =>
    Effect.gen(function* () {
      const { barrier } = makeBarrier(() => "1/1", 50)
      assert.strictEqual(yield* Effect.flip(barrier.await(performance.now())), Unavailable)
    })
  )
})
