import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterEach, vi } from "vitest"
import { PauseDetector } from "../../../../../src/adapters/outbound/postgres/feed/PauseDetector.ts"

describe("PauseDetector", () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  for (const [clock, advance] of [
    ["monotonic", { monotonic: 501, wall: 0 }],
    ["wall", { monotonic: 1, wall: 501 }]
  ] as const)
    it.effect(`detects a pause of more than 500 ms by the ${clock} clock, from its end on`, () =>
      Effect.gen(function* () {
        const now = { monotonic: performance.now(), wall: Date.now() }
        vi.spyOn(performance, "now").mockImplementation(() => now.monotonic)
        vi.spyOn(Date, "now").mockImplementation(() => now.wall)
        const run = (by: typeof now) => {
          now.monotonic += by.monotonic
          now.wall += by.wall
        }
        const pauses = yield* PauseDetector.make
        for (let i = 0; i < 10; i++) {
          run({ monotonic: 400, wall: 400 })
          assert.strictEqual(pauses.lastEnd(), Number.NEGATIVE_INFINITY)
        }
        run(advance)
        const end = now.monotonic
        assert.strictEqual(pauses.lastEnd(), end)
        run({ monotonic: 400, wall: 400 })
        assert.strictEqual(pauses.lastEnd(), end)
      })
    )
})
