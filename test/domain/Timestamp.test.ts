import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import {
  isRepresentable,
  normalizeTime,
  parseTime,
  Timestamp,
  toTimestamp
} from "../../src/domain/Timestamp.ts"

const earliest = -62_135_596_800_000
const latest = 253_402_300_799_999
const Instant = Schema.Int.check(Schema.isBetween({ minimum: earliest, maximum: latest }))

it.prop(
  "toTimestamp formats instants in UTC with milliseconds, and the texts sort in the order of the instants",
  { a: Instant, b: Instant },
  ({ a, b }) => {
    const text = toTimestamp(a)
    assert.isTrue(Schema.is(Timestamp)(text) && isRepresentable(a))
    assert.strictEqual(Date.parse(text), a)
    assert.strictEqual(normalizeTime(text), text)
    assert.strictEqual(text < toTimestamp(b), a < b)
  }
)

it("toTimestamp clamps instants to the years 0001 to 9999", () => {
  for (const [millis, text] of [
    [earliest - 1, "0001-01-01T00:00:00.000Z"],
    [Number.NEGATIVE_INFINITY, "0001-01-01T00:00:00.000Z"],
    [latest + 1, "9999-12-31T23:59:59.999Z"]
  ] as const) {
    assert.strictEqual<string>(toTimestamp(millis), text)
    assert.isFalse(isRepresentable(millis))
  }
  assert.isFalse(isRepresentable(Number.NaN))
})

it.each([
  ...["2026-01-01T00:00:00Z", "2026-01-01 00:00:00.000Z", "2026-01-01T00:00:00.000+00:00"],
  ...["2026-01-01T00:00:00.000Z\n", "+012026-01-01T00:00:00.000Z"]
])("the Timestamp schema rejects %j", (text) => assert.isFalse(Schema.is(Timestamp)(text)))

it.each([
  ...["2026-02-28T24:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.123999999Z"],
  ...["2026-12-31T23:59:59.999-00:01", "2024-02-29T12:00:00.999+02:00", "0001-01-01T00:00:00Z"]
])("normalizeTime converts %s to UTC with milliseconds", (text) => {
  assert.strictEqual(normalizeTime(text), new Date(text).toISOString())
})

it("parseTime accepts a date only if its month has the day", () => {
  for (const year of ["1900", "2000", "2023", "2024"])
    for (let month = 1; month <= 13; month++)
      for (let day = 0; day <= 32; day++) {
        const date = `${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`
        const expected = new Date(Date.UTC(Number(year), month - 1, day)).toISOString().startsWith(date)
        assert.strictEqual(!Number.isNaN(parseTime(`${date}T00:00:00.000Z`)), expected, date)
      }
})
