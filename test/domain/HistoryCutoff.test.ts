import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { historyCutoff, isVisible } from "../../src/domain/Billing.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"

const freeHistoryMs = 604_800_000

/** An instant from 1970 to 2100, and the distance of a version from the cutoff, in milliseconds. */
const Now = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Date.UTC(2100, 0) }))
const Distance = Schema.Int.check(Schema.isBetween({ minimum: -1_000_000, maximum: 1_000_000 }))

describe("historyCutoff", () => {
  it.prop(
    "historyCutoff is exactly seven days before now for every tier except Solo and Team",
    {
      now: Now,
      distance: Distance,
      tier: Schema.Union([Schema.Literals(["free", "Solo", "TEAM", "", "enterprise"]), Schema.String])
    },
    ({ now, distance, tier }) => {
      if (tier === "solo" || tier === "team") return
      const oldest = historyCutoff(tier, now)
      assert.strictEqual(oldest, toTimestamp(now - freeHistoryMs))
      assert.strictEqual(isVisible(toTimestamp(now - freeHistoryMs + distance), oldest), distance >= 0)
      assert.isTrue(isVisible(toTimestamp(now - freeHistoryMs), oldest))
      assert.isFalse(isVisible(toTimestamp(now - freeHistoryMs - 1), oldest))
      assert.isTrue(isVisible(toTimestamp(now + 1), oldest))
    }
  )

  it.prop(
    "historyCutoff is undefined for Solo and Team, so every version is visible",
    { now: Now, created: Now, tier: Schema.Literals(["solo", "team"]) },
    ({ now, created, tier }) => {
      assert.strictEqual(historyCutoff(tier, now), undefined)
      assert.isTrue(isVisible(toTimestamp(created), undefined))
    }
  )
})
