import { isPaid } from "../Billing.ts"
import { type Timestamp, toTimestamp } from "../Timestamp.ts"

const freeHistoryMs = 7 * 24 * 60 * 60 * 1000

/**
 * Returns the earliest creation time of a version that a tier can see: `now - 7 days` (inclusive) on Free, and
 * `undefined` (no limit) on Solo and Team (specification 4.4). `now` is in milliseconds since the epoch.
 */
export const historyCutoff = (tier: string, now: number): Timestamp | undefined =>
  isPaid(tier) ? undefined : toTimestamp(now - freeHistoryMs)

/** Returns true if a version created at `created_at` is not older than `oldest`. */
export const isVisible = (created_at: Timestamp, oldest: Timestamp | undefined): boolean =>
  oldest === undefined || created_at >= oldest
