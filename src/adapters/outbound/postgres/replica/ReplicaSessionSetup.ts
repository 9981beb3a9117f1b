import * as Effect from "effect/Effect"
import { statementTimeoutMs } from "../connection/Timeouts.ts"
import { serverIdentity, type SetUpSession } from "../connection/SessionSetup.ts"
import { makeConnectionError } from "../connection/Timeouts.ts"
import { formatPosition, type Position } from "./Position.ts"

/** Prepares a session as `SessionSetup.ts` does, and compares its server with the one whose position is known. */
const setUp = `select set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('statement_timeout', '${statementTimeoutMs}', false),
  ${serverIdentity} = $1 and pg_is_in_recovery() and pg_last_wal_replay_lsn() >= $2::text::pg_lsn as is_same`

const otherServerError = makeConnectionError("another server responded, or the replica has gone back")

/**
 * Makes the set-up of sessions that must lead to a server at a position or later. A connection stays with its server, and
 * a server that goes back, because it recovers from a crash, closes all connections. So what holds when a session is
 * set up holds as long as its connection.
 */
export const makeReplicaSessionSetup =
  (server: string, findPosition: () => Position): SetUpSession =>
  (connection) =>
    Effect.suspend(() => connection.query(setUp, [server, formatPosition(findPosition())], false)).pipe(
      Effect.flatMap(({ rows }) =>
        rows[0]?.is_same === true ? Effect.succeed(true) : Effect.fail(otherServerError)
      )
    )
