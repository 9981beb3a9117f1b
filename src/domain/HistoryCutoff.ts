import { isPaid } from "./Billing.ts"
import { type Timestamp, toTimestamp } from "./Timestamp.ts"

const freeHistoryMs = 7 * 24 * 60 * 60 * 1000

/**
 * Returns the earliest creation time of the versions that a tier can see (specification 4.4): `undefined` (no limit) on
 * Solo and Team, and 7 days before `now` on any other tier. `now` is in milliseconds since the epoch.
 */
export const historyCutoff = (tier: string, now: number): Timestamp | undefined =>
  isPaid(tier) ? undefined : toTimestamp(now - freeHistoryMs)

/** Returns true if a version was created at `oldest` or later, or if `oldest` is undefined. */
export const isVisible = (created_at: Timestamp, oldest: Timestamp | undefined): boolean =>
  oldest === undefined || created_at >= oldest
