import { createHash } from "node:crypto"
import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import {
  endKey,
  formatKeySummary,
  hashApiKey,
  InvalidKey,
  InvalidKeyFormat,
  isActive,
  keepLifetime,
  makeApiKey,
  parseApiKey,
  toKeyEnds,
  toReplacedName
} from "../../src/domain/ApiKey.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"

const Byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const bytes = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Byte), { minLength: 32, maxLength: 32 }),
  (values) => Uint8Array.from(values)
)

it.prop(
  "an API key is key_live_ followed by 32 bytes in hexadecimal, its hash is SHA-256, and its summary shows the first and the last four digits",
  { bytes },
  ({ bytes }) => {
    const hex = Buffer.from(bytes).toString("hex")
    const key = makeApiKey(bytes)
    assert.strictEqual(key, `key_live_${hex}`)
    assert.deepStrictEqual(parseApiKey(key), Result.succeed(key))
    assert.strictEqual(hashApiKey(key), createHash("sha256").update(key).digest("hex"))
    assert.strictEqual(formatKeySummary(toKeyEnds(key)), `key_live_${hex.slice(0, 4)}...${hex.slice(60)}`)
    assert.throws(() => makeApiKey(bytes.subarray(1)), RangeError)
  }
)

it.prop(
  "parseApiKey fails with InvalidKeyFormat if the prefix of a key is wrong, and with InvalidKey if a digit is wrong",
  {
    bytes,
    at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 72 })),
    wrong: Schema.Literals([..."ABCDEFgz-. \n\0", "", "00", "é", "０"])
  },
  ({ bytes, at, wrong }) => {
    const key = makeApiKey(bytes)
    const token = key.slice(0, at) + wrong + key.slice(at + 1)
    assert.deepStrictEqual(
      parseApiKey(token),
      Result.fail(token.startsWith("key_live_") ? InvalidKey : InvalidKeyFormat)
    )
  }
)

/** Times in milliseconds since the epoch, close to each other so that many are equal. */
const Millis = Schema.Int.check(Schema.isBetween({ minimum: 1_767_225_599_990, maximum: 1_767_225_600_010 }))
const EndTime = Schema.NullOr(Millis)
const toEnd = (millis: number | null) => (millis === null ? null : toTimestamp(millis))

it.prop(
  "an API key that is not revoked is active before, but not at, the time of its expiry",
  { expires: EndTime, revoked: EndTime, now: Millis },
  ({ expires, revoked, now }) => {
    assert.strictEqual(
      isActive({ revoked_at: toEnd(revoked), expires_at: toEnd(expires) }, now),
      revoked === null && (expires === null || now < expires)
    )
  }
)

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

it.each([
  ["2026-01-01", "2026-04-01", "2026-03-01", "2026-05-30T00:00:00.000Z"],
  ["2026-01-01", "9999-12-31", "2027-01-01", "9999-12-31T23:59:59.999Z"],
  ["2026-01-01", null, "2027-01-01", null]
])(
  "a key issued on %s that expires on %s is replaced on %s by a key that expires at %s",
  (created, expires, now, expected) => {
    const toTime = (text: string) => toTimestamp(Date.parse(text))
    const replaced = { created_at: toTime(created), expires_at: expires === null ? null : toTime(expires) }
    assert.strictEqual(keepLifetime(replaced, toTime(now)), expected)
  }
)

it("the name of a replaced key ends with (replaced), and has at most 256 characters", () => {
  assert.strictEqual(toReplacedName("Production"), "Production (replaced)")
  assert.strictEqual(toReplacedName("🔑".repeat(256)), `${"🔑".repeat(245)} (replaced)`)
})
