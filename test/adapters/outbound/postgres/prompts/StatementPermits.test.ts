import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { makeQueryOf } from "../../../../../src/adapters/outbound/postgres/prompts/StatementPermits.ts"
import { workspace } from "../../../../support/archives.ts"

it.effect(
  "a workspace has at most 3 statements in flight, and another workspace does not wait for them",
  () =>
    Effect.gen(function* () {
      const [slow, other] = [workspace().id, workspace().id]
      const end = Latch.makeUnsafe()
      let inFlight = 0
      const queryOf = makeQueryOf(() =>
        Effect.suspend(() => {
          inFlight++
          return Effect.as(end.await, [])
        })
      )
      const statement = { text: "", params: [] }
      const statements = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 10 }, () => queryOf(slow)(statement)),
          { concurrency: "unbounded" }
        ),
        { startImmediately: true }
      )
      assert.strictEqual(inFlight, 3)
      const [interrupted, last] = [
        yield* Effect.forkChild(queryOf(other)(statement), { startImmediately: true }),
        yield* Effect.forkChild(queryOf(other)(statement), { startImmediately: true })
      ]
      assert.strictEqual(inFlight, 5)
      yield* Fiber.interrupt(interrupted)
      yield* end.open
      yield* Fiber.join(statements)
      yield* Fiber.join(last)
      assert.strictEqual(inFlight, 12)
    })
)
