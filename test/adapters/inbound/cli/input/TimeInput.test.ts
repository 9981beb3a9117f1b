import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { parseTimeInput } from "../../../../../src/adapters/inbound/cli/input/TimeInput.ts"
import { toTimestamp } from "../../../../../src/domain/Timestamp.ts"

const Instant = Schema.Int.check(Schema.isBetween({ minimum: -60e12, maximum: 249e12 }))

it.prop(
  "parseTimeInput parses timestamps, dates in UTC, and durations from now in minutes, hours and days of 24 hours",
  {
    instant: Instant,
    count: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9_999_999 })),
    unit: Schema.Literals(["m", "h", "d"]),
    now: Instant
  },
  ({ instant, count, unit, now }) => {
    const text = toTimestamp(instant)
    assert.strictEqual(parseTimeInput(text)!(now), instant)
    assert.strictEqual(parseTimeInput(text.slice(0, 10))!(now), Date.parse(`${text.slice(0, 10)}T00:00Z`))
    const milliseconds = { m: 60_000, h: 3_600_000, d: 86_400_000 }[unit]
    assert.strictEqual(parseTimeInput(`${count}${unit}`)!(now), now + count * milliseconds)
    assert.strictEqual(parseTimeInput("now")!(now), now)
  }
)

it.each([
  ...["", "90", "d", "-1d", "1.5h", "1w", "1D", "12345678d", " 1d", "1d\n"],
  ...["2026-02-30", "2026-1-1", "2026-12-31T23:59", "1767225600000", "10000-01-01"],
  ...["2026-01-01T00:00:00", "2026-01-01 00:00:00Z", "2026-01-01T25:00:00Z"]
])("parseTimeInput rejects %j", (text) => assert.isUndefined(parseTimeInput(text)))
