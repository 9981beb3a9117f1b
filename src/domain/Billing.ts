import * as Schema from "effect/Schema"
import { type Timestamp, toTimestamp } from "./Timestamp.ts"

/** The tiers of a workspace. Any other tier is treated as Free. */
export const Tier = Schema.Literals(["free", "solo", "team"])
export type Tier = typeof Tier.Type

const isTier = Schema.is(Tier)

/** Returns the tier of a workspace, or `free` if this program does not know the tier. */
export const toTier = (tier: string): Tier => (isTier(tier) ? tier : "free")

export const BillingStatus = Schema.Literals(["active", "past_due", "over_limit", "disputed"])
export type BillingStatus = typeof BillingStatus.Type

/** The tiers with API access and the full version history (specification 4.4 and 5.6). */
export const paidTiers: ReadonlyArray<string> = ["solo", "team"] satisfies ReadonlyArray<Tier>

const freeHistoryMs = 7 * 24 * 60 * 60 * 1000

/**
 * Returns the earliest creation time of the versions that a workspace of this tier can read (specification 4.4). The
 * time is 7 days before `now`, or `undefined` (no limit) for Solo and Team. `now` is in milliseconds since the epoch.
 */
export const historyCutoff = (tier: string, now: number): Timestamp | undefined =>
  paidTiers.includes(tier) ? undefined : toTimestamp(now - freeHistoryMs)

/** Returns true if a version was created at `oldest` or later, or if `oldest` is undefined. */
export const isVisible = (created_at: Timestamp, oldest: Timestamp | undefined): boolean =>
  oldest === undefined || created_at >= oldest
