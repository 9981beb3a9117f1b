import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { RateLimited, secondsUntilReset, toRateWindow } from "../../../src/domain/time/RateWindow.ts"

const Now = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Date.UTC(9999, 0) }))

describe("toRateWindow", () => {
  it.prop("toRateWindow returns the clock minute that contains the instant", { now: Now }, ({ now }) => {
    const start = toRateWindow(now) * 60_000
    assert.isTrue(Number.isInteger(toRateWindow(now)) && start <= now && now < start + 60_000)
    assert.strictEqual(toRateWindow(start), toRateWindow(now))
    assert.strictEqual(toRateWindow(start + 59_999), toRateWindow(now))
    assert.strictEqual(toRateWindow(start + 60_000), toRateWindow(now) + 1)
    assert.strictEqual(toRateWindow(start - 1), toRateWindow(now) - 1)
  })

  it.prop(
    "secondsUntilReset returns the time until the window ends, rounded up to 1 to 60 seconds",
    { now: Now },
    ({ now }) => {
      const left = secondsUntilReset(now)
      assert.isTrue(Number.isInteger(left) && left >= 1 && left <= 60)
      assert.strictEqual(toRateWindow(now + left * 1000), toRateWindow(now) + 1)
      assert.strictEqual(toRateWindow(now + (left - 1) * 1000), toRateWindow(now))
    }
  )

  it.each([
    [0, 60],
    [1, 60],
    [999, 60],
    [1000, 59],
    [58_999, 2],
    [59_000, 1],
    [59_999, 1],
    [60_000, 60]
  ])("secondsUntilReset at %d ms returns %d", (now, left) => {
    assert.strictEqual(secondsUntilReset(now), left)
    assert.strictEqual(secondsUntilReset(Date.UTC(2026, 0) + now), left)
  })
})

describe("RateLimited", () => {
  it.prop(
    "RateLimited returns the scope, the limit and the seconds until the reset",
    { scope: Schema.Literals(["key", "process"]), limit: Schema.Natural, now: Now },
    ({ scope, limit, now }) => {
      assert.deepStrictEqual(RateLimited(scope, limit, now), {
        _tag: "RateLimited",
        scope,
        limit,
        retry_after: secondsUntilReset(now)
      })
    }
  )
})
