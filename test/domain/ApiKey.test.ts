import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import {
  endKey,
  InvalidKey,
  InvalidKeyFormat,
  isActive,
  isExpired,
  keepLifetime,
  toReplacedName,
  toKeyEnds,
  formatKeySummary,
  makeApiKey,
  parseApiKey
} from "../../src/domain/ApiKey.ts"
import { fitsName } from "../../src/domain/Sizes.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const bytes = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Byte), { minLength: 32, maxLength: 32 }),
  (values) => Uint8Array.from(values)
)
const key = Arbitrary.map(bytes, makeApiKey)

describe("makeApiKey", () => {
  it.prop(
    "makeApiKey returns the prefix key_live_ followed by the bytes in hexadecimal",
    { bytes },
    ({ bytes }) => {
      const hex = Array.from(bytes, (byte) => (byte < 16 ? "0" : "") + byte.toString(16)).join("")
      assert.strictEqual(makeApiKey(bytes), `key_live_${hex}`)
      assert.match(makeApiKey(bytes), /^key_live_[0-9a-f]{64}$/)
    }
  )

  it("makeApiKey throws for any number of bytes except 32", () => {
    for (const length of [0, 1, 31, 33, 64]) {
      assert.throws(() => makeApiKey(new Uint8Array(length)), RangeError)
    }
  })

  it.prop("formatKeySummary shows the first and the last four digits", { bytes }, ({ bytes }) => {
    const hex = Buffer.from(bytes).toString("hex")
    const ends = toKeyEnds(makeApiKey(bytes))
    assert.deepStrictEqual(ends, { key_start: hex.slice(0, 4), key_end: hex.slice(60) })
    assert.strictEqual(formatKeySummary(ends), `key_live_${hex.slice(0, 4)}...${hex.slice(60)}`)
  })
})

describe("parseApiKey", () => {
  it.prop("parseApiKey accepts every key that makeApiKey returns", { key }, ({ key }) => {
    assert.deepStrictEqual(parseApiKey(key), Result.succeed(key))
  })

  it.prop(
    "parseApiKey fails with InvalidKey when one character after the prefix is wrong",
    {
      key,
      at: Schema.Int.check(Schema.isBetween({ minimum: 9, maximum: 72 })),
      wrong: Schema.Literals([..."ABCDEFgz-_ .\n\0", "", "00", "é", "０"])
    },
    ({ key, at, wrong }) => {
      const token = key.slice(0, at) + wrong + key.slice(at + 1)
      assert.deepStrictEqual(parseApiKey(token), Result.fail(InvalidKey))
    }
  )

  it.prop(
    "parseApiKey fails with InvalidKeyFormat if a token does not start with key_live_, and with InvalidKey if the rest is not 64 digits",
    { key },
    ({ key }) => {
      const rest = key.slice(9)
      for (const token of [
        rest,
        `KEY_LIVE_${rest}`,
        `Key_live_${rest}`,
        `key_test_${rest}`,
        `key_live${rest}`,
        ` ${key}`,
        `x${key}`,
        "key_live",
        ""
      ]) {
        assert.deepStrictEqual(parseApiKey(token), Result.fail(InvalidKeyFormat), token)
      }
      for (const token of [
        "key_live_",
        `${key}\n`,
        `${key} `,
        key.slice(0, -1),
        `${key}0`,
        `key_live_${key}`
      ]) {
        assert.deepStrictEqual(parseApiKey(token), Result.fail(InvalidKey), token)
      }
    }
  )
})

/** Times in milliseconds since the epoch, close to each other so that many are equal. */
const Millis = Schema.Int.check(Schema.isBetween({ minimum: 1_767_225_599_990, maximum: 1_767_225_600_010 }))
const EndTime = Schema.NullOr(Millis)
const toEnd = (millis: number | null) => (millis === null ? null : toTimestamp(millis))

describe("isExpired and isActive", () => {
  it.prop(
    "a key is expired from the millisecond of its expiry on, and active until then unless it is revoked",
    { expires: EndTime, revoked: EndTime, now: Millis },
    ({ expires, revoked, now }) => {
      const isExpiredNow = expires !== null && expires <= now
      assert.strictEqual(isExpired(toEnd(expires), now), isExpiredNow)
      assert.strictEqual(
        isActive({ revoked_at: toEnd(revoked), expires_at: toEnd(expires) }, now),
        revoked === null && !isExpiredNow
      )
    }
  )
})

describe("endKey", () => {
  it.prop(
    "endKey ends a key at the given time or at its own expiry, whichever is earlier, and keeps the time of a revocation",
    { expires: EndTime, revoked: EndTime, ends: Millis, now: Millis },
    ({ expires, revoked, ends, now }) => {
      const before = { revoked_at: toEnd(revoked), expires_at: toEnd(expires) }
      const after = endKey(before, toTimestamp(ends), toTimestamp(now))
      for (const time of [now, ends, expires ?? now].flatMap((each) => [each - 1, each, each + 1])) {
        if (time < now) continue
        assert.strictEqual(isActive(after, time), isActive(before, time) && time < ends, String(time))
      }
      if (revoked !== null) assert.strictEqual(after.revoked_at, before.revoked_at)
    }
  )
})

it.each([
  ["Production", "Production (replaced)"],
  ["", " (replaced)"],
  ["🔑".repeat(256), `${"🔑".repeat(245)} (replaced)`]
])("the name of the replaced key %j becomes %j, which is at most 256 characters", (name, replaced) => {
  assert.strictEqual(toReplacedName(name), replaced)
  assert.isTrue(fitsName(replaced))
})

describe("keepLifetime", () => {
  const at = (text: string) => toTimestamp(Date.parse(text))

  it.each([
    ["2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-05-30T00:00:00.000Z"],
    ["2026-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "2027-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"]
  ])(
    "a key issued at %s that expires at %s is replaced at %s by a key that expires at %s",
    (created, expires, now, expected) => {
      assert.strictEqual(
        keepLifetime({ created_at: at(created), expires_at: at(expires) }, at(now)),
        expected
      )
    }
  )

  it("a key that never expires is replaced by a key that never expires", () => {
    const now = at("2026-01-01T00:00:00Z")
    assert.isNull(keepLifetime({ created_at: now, expires_at: null }, now))
  })
})
