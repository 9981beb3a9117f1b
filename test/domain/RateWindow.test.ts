import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { secondsUntilReset, toRateWindow } from "../../src/domain/ApiKey.ts"

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
    "secondsUntilReset returns the seconds until the window ends, rounded up to an integer from 1 to 60",
    { now: Now },
    ({ now }) => {
      const left = secondsUntilReset(now)
      assert.isTrue(Number.isInteger(left) && left >= 1 && left <= 60)
      assert.strictEqual(toRateWindow(now + left * 1000), toRateWindow(now) + 1)
      assert.strictEqual(toRateWindow(now + (left - 1) * 1000), toRateWindow(now))
    }
  )
})
