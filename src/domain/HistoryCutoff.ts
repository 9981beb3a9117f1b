import { isPaid } from "./Billing.ts"
import { type Timestamp, toTimestamp } from "./Timestamp.ts"

const sevenDays = 7 * 24 * 60 * 60 * 1000

/**
 * The oldest creation time that a tier sees in a prompt's history: `now - 7 days`, itself included, for whoever is
 * Free; `undefined`, no limit, for Solo and Team (SPEC.md section 4.4). `now` is in milliseconds since the epoch.
 */
export const historyCutoff = (tier: string, now: number): Timestamp | undefined =>
  isPaid(tier) ? undefined : toTimestamp(now - sevenDays)

/** Whether a version made at `created_at` is visible from `oldest` on. */
export const isVisible = (created_at: Timestamp, oldest: Timestamp | undefined): boolean =>
  oldest === undefined || created_at >= oldest
