import type { PgConnection } from "@effect/sql-pg/PgConnection"
import type * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Instant } from "../../../domain/Instant.ts"

/** Follows a change feed. */
export interface ChangeObserver {
  /** Called after a change was recorded in the revisions. */
  readonly onChange: () => void
  /** Called when a heartbeat has arrived: every change committed before it was sent has been reported. */
  readonly onHeartbeat: (sentAt: Instant) => void
  /** Runs while the feed is connected, on the feed's connection to the primary. Fails when that is lost. */
  readonly follow: (connection: PgConnection) => Effect.Effect<never, SqlError>
}
