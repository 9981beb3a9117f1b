import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { secondsUntilReset } from "../../src/domain/RateLimit.ts"

it.prop(
  "secondsUntilReset returns the seconds until the clock minute ends, rounded up to an integer from 1 to 60",
  { now: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Date.UTC(9999, 0) })) },
  ({ now }) => {
    const left = secondsUntilReset(now)
    assert.isTrue(Number.isInteger(left) && left >= 1 && left <= 60)
    const end = (Math.floor(now / 60_000) + 1) * 60_000
    assert.isTrue(now + left * 1000 >= end && now + (left - 1) * 1000 < end)
  }
)
