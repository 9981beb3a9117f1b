import { assert, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { historyCutoff, isVisible, toTier } from "../../src/domain/Billing.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"

const freeHistoryMs = 604_800_000

it.prop(
  "the tiers Solo and Team see every version, and any other tier counts as Free and sees the versions of the last seven days",
  {
    tier: Schema.Literals(["free", "solo", "team", "Solo", "TEAM", " team", "", "constructor"]),
    now: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Date.UTC(2100, 0) })),
    distance: Schema.Int.check(Schema.isBetween({ minimum: -2, maximum: 2 }))
  },
  ({ tier, now, distance }) => {
    const isPaid = tier === "solo" || tier === "team"
    assert.strictEqual(toTier(tier), isPaid ? tier : "free")
    const created = toTimestamp(now - freeHistoryMs + distance)
    assert.strictEqual(isVisible(created, historyCutoff(tier, now)), isPaid || distance >= 0)
  }
)
