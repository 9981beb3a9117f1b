import { assert, describe, it } from "@effect/vitest"
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

describe("toTimestamp", () => {
  it.prop("toTimestamp formats an instant in UTC with milliseconds", { millis: Instant }, ({ millis }) => {
    const text = toTimestamp(millis)
    assert.match(text, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.isTrue(Schema.is(Timestamp)(text))
    assert.isTrue(isRepresentable(millis))
    assert.strictEqual(Date.parse(text), millis)
  })

  it.prop(
    "toTimestamp returns texts that sort in the order of the instants",
    { a: Instant, b: Instant },
    ({ a, b }) => {
      assert.strictEqual(toTimestamp(a) < toTimestamp(b), a < b)
      assert.strictEqual(toTimestamp(a) === toTimestamp(b), a === b)
      assert.isTrue(toTimestamp(Math.min(a, latest - 1)) < toTimestamp(Math.min(a, latest - 1) + 1))
    }
  )

  it.prop(
    "toTimestamp clamps instants to the years 0001 to 9999",
    { beyond: Schema.Natural },
    ({ beyond }) => {
      assert.strictEqual(toTimestamp(earliest - beyond), "0001-01-01T00:00:00.000Z")
      assert.strictEqual(toTimestamp(latest + beyond), "9999-12-31T23:59:59.999Z")
      assert.isFalse(isRepresentable(earliest - 1 - beyond))
      assert.isFalse(isRepresentable(latest + 1 + beyond))
    }
  )

  it("toTimestamp clamps infinite instants, and isRepresentable rejects NaN", () => {
    assert.strictEqual(toTimestamp(Number.NEGATIVE_INFINITY), "0001-01-01T00:00:00.000Z")
    assert.strictEqual(toTimestamp(Number.POSITIVE_INFINITY), "9999-12-31T23:59:59.999Z")
    assert.isFalse(isRepresentable(Number.NaN))
  })

  it.each([
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.0000Z",
    "2026-01-01 00:00:00.000Z",
    "2026-01-01T00:00:00.000+00:00",
    "2026-01-01T00:00:00.000z",
    "2026-01-01T00:00:00.000Z\n",
    "+012026-01-01T00:00:00.000Z",
    ""
  ])("the Timestamp schema rejects %j", (text) => {
    assert.isFalse(Schema.is(Timestamp)(text))
  })
})

describe("normalizeTime", () => {
  it.prop("normalizeTime returns a Timestamp unchanged", { millis: Instant }, ({ millis }) => {
    assert.strictEqual(normalizeTime(toTimestamp(millis)), toTimestamp(millis))
  })

  it.each([
    "2026-01-01T24:00:00.000Z",
    "2026-02-28T24:00Z",
    "2026-01-01T00:00Z",
    "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.1Z",
    "2026-01-01T00:00:00.123999999Z",
    "2026-01-01T00:00:00.00Z",
    "2026-12-31T23:59:59.999-00:01",
    "2026-01-01T00:00:00.000+02:00",
    "2024-02-29T12:00:00.999+00:00",
    "0001-01-01T00:00:00Z"
  ])("normalizeTime converts %s to UTC with milliseconds", (text) => {
    assert.strictEqual(normalizeTime(text), new Date(text).toISOString())
  })
})

describe("parseTime", () => {
  it("parseTime accepts only days that the month has", () => {
    for (const year of ["1900", "2000", "2023", "2024"]) {
      for (let month = 1; month <= 13; month++) {
        for (let day = 0; day <= 32; day++) {
          const date = `${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`
          const expected = new Date(Date.UTC(Number(year), month - 1, day)).toISOString().startsWith(date)
          assert.strictEqual(!Number.isNaN(parseTime(`${date}T00:00:00.000Z`)), expected, date)
        }
      }
    }
  })

  it.each([
    "now",
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01 00:00:00Z",
    "2026-01-01T25:00:00Z",
    "+12026-01-01T00:00:00Z"
  ])("parseTime returns NaN for %j", (text) => assert.isNaN(parseTime(text)))
})
