import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { toMessage } from "../../../../application/support/ErrorMessage.ts"
import { makeStateLog } from "../../../../application/support/StateLog.ts"
import type { Query } from "../driver/Query.ts"
import { makeQuery } from "../driver/QueryPool.ts"
import { checkOwnSession, serverIdentity, type SetUpSession } from "../connection/SessionSetup.ts"
import { describeSqlError, isConnectionLost } from "../driver/SqlErrors.ts"
import { makeConnectionError, replicaDeadlines, statementTimeoutMs } from "../driver/Timeouts.ts"
import type { UnavailableMapper } from "../driver/UnavailableMapper.ts"
import type { Fence } from "./Fence.ts"
import type { ReplicaBudget } from "../connection/ConnectionBudget.ts"
import { makeReplicaGauges } from "./ReplicaMetrics.ts"
import { decodeStandby, type ServerState, type StandbyState, selectStandby } from "./ServerState.ts"

/** The time between two queries of a replica's position, in milliseconds. */
const intervalMs = 20
/**
 * How long a replica may take to return its position before all connections to the replica are closed, in milliseconds.
 */
const responseTimeoutMs = 500
const reconnectDelayMs = 500
/** Maximum lag of a replica that is used, in milliseconds. */
const maxLagMs = 10_000

/**
 * The pools of a replica. All their connections lead to one server. The position of this server never goes back while
 * the pools are open.
 */
export interface ReplicaSession {
  readonly queryPrompts: Query
  readonly queryKeys: Query
}

export interface ReplicaInUse {
  readonly session: ReplicaSession
  /** The latest state that the replica has returned. */
  readonly state: StandbyState
}

/** The connections to a replica, and its name in log lines and metrics. */
export interface ReplicaServer {
  readonly name: string
  readonly config: PgClient.PgPoolConfig
}

class ReplicaProblem extends Data.TaggedError("ReplicaProblem")<{ readonly message: string }> {}

const fail = (message: string): Effect.Effect<never, ReplicaProblem> =>
  Effect.fail(new ReplicaProblem({ message }))

const otherServerError = makeConnectionError(
  "another server responded, or the replica is at an earlier position than before"
)

/**
 * Makes the setup of sessions on a standby. The setup succeeds only if the session runs on the server of the state that
 * `findState` returns, and this server has reached the position of the state. Both stay true until the connection ends:
 * a connection never changes its server, and a server whose position goes back in a crash recovery closes all
 * connections.
 */
export const makeReplicaSessionSetup =
  (findState: () => StandbyState): SetUpSession =>
  (connection) =>
    Effect.suspend(() => {
      const { server, position } = findState()
      const text = `select set_config('plan_cache_mode', 'force_generic_plan', false),
        set_config('statement_timeout', '${statementTimeoutMs}', false),
        ${serverIdentity} = $1 and pg_is_in_recovery()
          and pg_last_wal_replay_lsn() - '0/0' >= $2::text::numeric as "isSame"`
      return connection.query(text, [server, String(position)], false)
    }).pipe(
      Effect.flatMap(({ rows }) =>
        rows[0]?.isSame === true ? Effect.succeed(true) : Effect.fail(otherServerError)
      )
    )

/**
 * One standby. Queries the standby's position continuously, and offers pools for reads while the standby can be used.
 */
export class Replica {
  readonly #config: PgClient.PgPoolConfig
  readonly #budget: ReplicaBudget
  readonly #fence: Pick<Fence, "primary">
  readonly #gauges
  readonly #stateLog
  #inUse: ReplicaInUse | undefined
  /** True if the replica has responded since the last loss of a connection. */
  #isResponding = false

  constructor({ name, config }: ReplicaServer, budget: ReplicaBudget, fence: Pick<Fence, "primary">) {
    this.#config = config
    this.#budget = budget
    this.#fence = fence
    this.#gauges = makeReplicaGauges(name)
    this.#stateLog = makeStateLog({
      failed: `Replica ${name} is out of use`,
      restored: `Replica ${name} is in use again`
    })
  }

  /** The replica with its last state; `undefined` if it cannot run reads. */
  get usable(): ReplicaInUse | undefined {
    return this.#isResponding ? this.#inUse : undefined
  }

  /** True while the replica has pools for reads. */
  get isConnected(): boolean {
    return this.#inUse !== undefined
  }

  readonly #follow: Effect.Effect<never, SqlError | ReplicaProblem, Scope.Scope> = Effect.gen(
    { self: this },
    function* () {
      const connection = yield* PgConnection.make(this.#config)
      if (!(yield* checkOwnSession(connection))) return yield* fail("it leads to a pooler")
      for (;;) {
        const state = yield* queryState(connection)
        const { primary } = this.#fence
        if (primary !== undefined) {
          yield* this.#check(state, primary)
          this.#inUse = { session: this.#inUse?.session ?? (yield* this.#openSession(state)), state }
          this.#isResponding = true
          this.#gauges.setUp(true)
          yield* this.#stateLog.up
        }
        yield* Effect.sleep(intervalMs)
      }
    }
    // Takes the replica out of use before its pools close, because closing may wait for statements.
  ).pipe(Effect.ensuring(Effect.sync(() => this.#close())))

  /**
   * Connects to the replica and queries its position continuously. Connects again after each failure, until the fiber
   * is interrupted.
   */
  readonly run: Effect.Effect<never> = Effect.scoped(this.#follow).pipe(
    Effect.catchCause((cause) => this.#stateLog.down(describeCause(cause))),
    Effect.andThen(Effect.sleep(reconnectDelayMs)),
    Effect.forever
  )

  #check(state: StandbyState, primary: ServerState): Effect.Effect<void, ReplicaProblem> {
    if (state.lineage !== primary.lineage)
      return fail(`it replays the WAL ${state.lineage}, the primary writes ${primary.lineage}`)
    if (this.#inUse !== undefined && this.#inUse.state.server !== state.server)
      return fail("its URL leads to different servers")
    // `sinceLastMs` measures the lag even if nothing else is written: the heartbeats of the change feed are
    // transactions, so a standby that is up to date has replayed a recent transaction.
    const lagMs = state.position >= primary.position ? 0 : state.sinceLastMs
    this.#gauges.setLag(lagMs / 1_000)
    return lagMs < maxLagMs ? Effect.void : fail(`it is more than ${maxLagMs / 1_000} s behind`)
  }

  /** Opens the pools, which connect when they are first used. */
  #openSession(first: StandbyState): Effect.Effect<ReplicaSession, SqlError, Scope.Scope> {
    const setUpSession = makeReplicaSessionSetup(() => this.#inUse?.state ?? first)
    const open = (pool: string, connections: number) =>
      makeQuery(this.#config, pool, connections, this.#mapFailure, setUpSession, replicaDeadlines)
    return Effect.zipWith(
      open("replica-read", this.#budget.prompts),
      open("replica-lookup", this.#budget.keys),
      (queryPrompts, queryKeys) => ({ queryPrompts, queryKeys })
    )
  }

  /** Maps every SQL error to `Unavailable`, because the primary can run the read instead. */
  readonly #mapFailure: UnavailableMapper = <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    Effect.catchIf(effect, isSqlError, (error) => {
      if (isConnectionLost(error)) this.#isResponding = false
      return Effect.fail(Unavailable)
      // TypeScript does not know that `isSqlError` excludes exactly `SqlError` from a generic error type.
    }) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

  #close(): void {
    this.#inUse = undefined
    this.#gauges.setUp(false)
  }
}

const queryState = (connection: PgConnection.PgConnection) =>
  Effect.flatMap(connection.query(selectStandby, [], false), ({ rows }) => {
    const state = decodeStandby(rows)
    return state === undefined ? fail("it is not a standby") : Effect.succeed(state)
  }).pipe(
    Effect.timeoutOrElse({
      duration: responseTimeoutMs,
      orElse: () => fail(`no response for ${responseTimeoutMs} ms`)
    })
  )

const describeCause = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return isSqlError(error) ? describeSqlError(error) : toMessage(error)
}
