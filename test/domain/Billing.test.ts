import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import {
  ApiNotAllowed,
  BillingStatus,
  Disputed,
  checkAccess,
  isPaid,
  PastDue,
  Tier,
  toTier
} from "../../src/domain/Billing.ts"

describe("checkAccess", () => {
  it.prop(
    "checkAccess fails with ApiNotAllowed for every tier but Solo and Team, whatever the billing status",
    { tier: Schema.Union([Tier, Schema.String]), billing_status: BillingStatus },
    ({ tier, billing_status }) => {
      const paid = ["solo", "team"].includes(tier)
      assert.strictEqual(isPaid(tier), paid)
      if (!paid) assert.deepStrictEqual(checkAccess({ tier, billing_status }), ApiNotAllowed)
    }
  )

  const unpaid = [
    "free",
    "Free",
    "SOLO",
    "Team",
    "solo ",
    " team",
    "",
    "enterprise",
    "constructor",
    "__proto__"
  ]

  it.each([
    ...unpaid.flatMap((tier) =>
      BillingStatus.literals.map((billing) => [tier, billing, ApiNotAllowed] as const)
    ),
    ...["solo", "team"].flatMap((tier) => [
      [tier, "active", undefined] as const,
      [tier, "disputed", Disputed] as const,
      [tier, "past_due", PastDue] as const,
      [tier, "over_limit", PastDue] as const
    ])
  ])(
    "checkAccess returns the error of the tier %j with billing status %s, if any",
    (tier, billing_status, expected) => {
      assert.deepStrictEqual(checkAccess({ tier, billing_status }), expected)
    }
  )
})

describe("toTier", () => {
  it.prop(
    "toTier returns a known tier unchanged, and free for every other tier",
    { tier: Schema.Union([Tier, Schema.String]) },
    ({ tier }) => {
      const isKnown = ["free", "solo", "team"].includes(tier)
      assert.strictEqual(toTier(tier), isKnown ? tier : "free")
    }
  )
})
