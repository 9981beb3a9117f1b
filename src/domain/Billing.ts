import * as Schema from "effect/Schema"

/** The plans that a workspace can be on. A tier that is none of these is treated as Free. */
export const Tier = Schema.Literals(["free", "solo", "team"])
export type Tier = typeof Tier.Type

export const BillingStatus = Schema.Literals(["active", "past_due", "over_limit", "disputed"])
export type BillingStatus = typeof BillingStatus.Type

/** The workspace's plan has no API access (SPEC.md section 5.6). */
export const ApiNotAllowed = { _tag: "ApiNotAllowed" } as const
/** The workspace has an active chargeback dispute (SPEC.md section 7). */
export const Disputed = { _tag: "Disputed" } as const
/** The subscription is past due or over its limit (SPEC.md section 7). */
export const PastDue = { _tag: "PastDue" } as const
export type AccessError = typeof ApiNotAllowed | typeof Disputed | typeof PastDue

/** Whether a tier is Solo or higher: the paid tiers have the API and the full history (SPEC.md sections 4.4, 5.6). */
export const isPaid = (tier: string): boolean => tier === "solo" || tier === "team"

/** The gate in its order: tier, then dispute, then dues (DESIGN.md section 4); `undefined` lets the caller in. */
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
