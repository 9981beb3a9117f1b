import * as Schema from "effect/Schema"

/** The tiers of a workspace. Any other tier is treated as Free. */
export const Tier = Schema.Literals(["free", "solo", "team"])
export type Tier = typeof Tier.Type

const isTier = Schema.is(Tier)

/** Returns the tier of a workspace, or `free` if this program does not know the tier. */
export const toTier = (tier: string): Tier => (isTier(tier) ? tier : "free")

export const BillingStatus = Schema.Literals(["active", "past_due", "over_limit", "disputed"])
export type BillingStatus = typeof BillingStatus.Type

/** The workspace's tier has no API access (specification 5.6). */
export const ApiNotAllowed = { _tag: "ApiNotAllowed" } as const
/** The workspace has an active chargeback dispute (specification 7). */
export const Disputed = { _tag: "Disputed" } as const
/** The subscription is past due or over its limit (specification 7). */
export const PastDue = { _tag: "PastDue" } as const
export type AccessError = typeof ApiNotAllowed | typeof Disputed | typeof PastDue

/** The tiers with API access and the full version history (specification 4.4 and 5.6). */
export const paidTiers: ReadonlyArray<string> = ["solo", "team"] satisfies ReadonlyArray<Tier>

/** Returns true for a tier with API access. */
export const isPaid = (tier: string): boolean => paidTiers.includes(tier)

/**
 * Returns the error for a workspace without access to the API, or `undefined` if the workspace has access. The tier is
 * checked before the billing status.
 */
export const checkAccess = (workspace: {
  readonly tier: string
  readonly billing_status: BillingStatus
}): AccessError | undefined => {
  if (!isPaid(workspace.tier)) return ApiNotAllowed
  switch (workspace.billing_status) {
    case "active":
      return undefined
    case "disputed":
      return Disputed
    case "past_due":
    case "over_limit":
      return PastDue
  }
}
