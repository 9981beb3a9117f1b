import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import { ApiNotAllowed, checkAccess, Disputed, PastDue } from "../../src/domain/ApiKey.ts"
import { BillingStatus, Tier, toTier } from "../../src/domain/Billing.ts"

/** Unknown tiers. Most resemble a known tier. */
const similarTiers = ["Free", "SOLO", "Team", "solo ", " team", "", "enterprise", "constructor", "__proto__"]
const anyTier = Schema.Union([Tier, Schema.Literals(similarTiers), Schema.String])

describe("checkAccess", () => {
  it.prop(
    "checkAccess returns ApiNotAllowed for every tier except Solo and Team, whatever the billing status",
    { tier: anyTier, billing_status: BillingStatus },
    ({ tier, billing_status }) => {
      if (!["solo", "team"].includes(tier))
        assert.deepStrictEqual(checkAccess({ tier, billing_status }), ApiNotAllowed)
    }
  )

  it.each([
    ["active", undefined],
    ["disputed", Disputed],
    ["past_due", PastDue],
    ["over_limit", PastDue]
  ] as const)(
    "checkAccess returns the error of the billing status %s, if any, for the tiers Solo and Team",
    (billing_status, expected) => {
      for (const tier of ["solo", "team"])
        assert.deepStrictEqual(checkAccess({ tier, billing_status }), expected)
    }
  )
})

describe("toTier", () => {
  it.prop(
    "toTier returns a known tier unchanged, and free for every other tier",
    { tier: anyTier },
    ({ tier }) => {
      const isKnown = ["free", "solo", "team"].includes(tier)
      assert.strictEqual(toTier(tier), isKnown ? tier : "free")
    }
  )
})
