import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { parseTimeInput, resolveTime, toTimestamp } from "../../src/domain/Timestamp.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9_999_999 }))
/** Instants in the years 1000 to 9999. */
const Instant = Schema.Int.check(
  Schema.isBetween({ minimum: Date.UTC(1000, 0, 1), maximum: Date.UTC(9999, 11, 31, 23, 59, 59, 999) })
)
const milliseconds = { m: 60_000, h: 3_600_000, d: 86_400_000 }

const parse = (text: string, now = 0) => {
  const time = parseTimeInput(text)
  return time === undefined ? undefined : resolveTime(time, now)
}

describe("parseTimeInput", () => {
  it.prop(
    "parseTimeInput parses a duration as that many minutes, hours or days of 24 hours from now",
    { count: Count, unit: Schema.Literals(["m", "h", "d"]), now: Instant },
    ({ count, unit, now }) => {
      assert.strictEqual(parse(`${count}${unit}`, now), now + count * milliseconds[unit])
    }
  )

  it.prop(
    "parseTimeInput parses every timestamp, independently of the current time",
    { instant: Instant },
    ({ instant }) => {
      assert.strictEqual(parse(toTimestamp(instant), 1), instant)
    }
  )

  it.prop(
    "parseTimeInput parses a date as the start of that day in UTC",
    { instant: Instant },
    ({ instant }) => {
      const date = toTimestamp(instant).slice(0, 10)
      assert.strictEqual(parse(date), Date.parse(`${date}T00:00:00.000Z`))
    }
  )

  it.each([
    ["now", 123],
    ["2026-12-31T23:59Z", Date.UTC(2026, 11, 31, 23, 59)],
    ["2026-03-29T02:30:00+02:00", Date.UTC(2026, 2, 29, 0, 30)],
    ["2028-02-29", Date.UTC(2028, 1, 29)]
  ] as const)("parseTimeInput parses %s", (text, instant) => {
    assert.strictEqual(parse(text, 123), instant)
  })

  it.each([
    "",
    "90",
    "d",
    "-1d",
    "1.5h",
    "1w",
    "1D",
    "12345678d",
    " 1d",
    "1d\n",
    "tomorrow",
    "2026-02-30",
    "2027-02-29",
    "2026-13-01",
    "2026-1-1",
    "2026-12-31T23:59",
    "2026-12-31 23:59Z",
    "2026-12-31T23:59:00 Europe/Paris",
    "1767225600000",
    "10000-01-01"
  ])("parseTimeInput rejects %j", (text) => {
    assert.isUndefined(parseTimeInput(text))
  })
})
