import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgPool from "@effect/sql-pg/PgPool"
import type { PgConnection, Result } from "@effect/sql-pg/PgConnection"
import type { SqlError } from "effect/sql/SqlError"
import { metricRegistry } from "../../../../application/observability/Instrumentation.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Query, Row, Statement } from "./Query.ts"
import type { SetUpSession } from "../connection/DatabaseServer.ts"
import {
  connectTimeoutError,
  connectTimeoutMs,
  isConnectionLost,
  poolExhaustedError,
  type SqlErrorHandler
} from "./SqlErrors.ts"

/** A statement first waits for a connection, then runs. */
type Phase = "waiting" | "running"

const makeGauge = (pool: string, name: string, description: string): Metric.Gauge<number> =>
  Metric.gauge(`prompt_retrieval_postgres_statements_${name}`, { description, attributes: { pool } })

interface PooledQuery {
  readonly statement: Statement
  phase: Phase | undefined
  /** The connection of the attempt that runs; undefined while the query waits for a connection. */
  connection: PgConnection | undefined
  /** True once the query has the permit of its workspace. */
  hasPermit: boolean
  /** Fails the query when it has waited for `connectTimeoutMs`. */
  timer: NodeJS.Timeout | undefined
  failWaiting: () => void
}

/**
 * Runs queries on the connections of one pool. A query fails if it waits longer than `connectTimeoutMs` for a
 * connection. If the caller of a running query is interrupted, for example by its deadline, the pool discards the
 * connection, because the server may be silently gone. The connections must be multiplexed, because only multiplexed
 * connections can be interrupted without waiting for the server.
 */
class QueryPool {
  readonly #pool: PgPool.PgPool
  readonly #maxConnections: number
  readonly #setUpSession: SetUpSession
  readonly #gauges: Readonly<Record<Phase, Metric.Gauge<number>>>
  #running = 0
  /**
   * For each connection whose session is set up: true if the session belongs to this connection alone. Statements on
   * other connections are not prepared, because a pooler may run each statement in another session.
   */
  readonly #hasOwnSession = new WeakMap<PgConnection, boolean>()
  /**
   * Limits the in-flight statements of a workspace to one less than the number of connections, if there are several. A
   * slow statement blocks its whole connection, so one connection stays free for other workspaces.
   */
  readonly #permits: RcMap.RcMap<WorkspaceId, Semaphore.Semaphore>

  constructor(
    pool: PgPool.PgPool,
    name: string,
    maxConnections: number,
    setUpSession: SetUpSession,
    permits: RcMap.RcMap<WorkspaceId, Semaphore.Semaphore>
  ) {
    this.#pool = pool
    this.#maxConnections = maxConnections
    this.#setUpSession = setUpSession
    this.#gauges = {
      waiting: makeGauge(name, "waiting", "Statements that wait for a connection of the pool"),
      running: makeGauge(name, "running", "Statements in flight on the pool's connections")
    }
    this.#permits = permits
  }

  /** Runs a statement when its workspace has a free permit and a connection is free. */
  run(statement: Statement): Effect.Effect<ReadonlyArray<Row>, SqlError> {
    const result = Effect.withFiber<Result, SqlError>(({ context }) =>
      Effect.callback((resume) => {
        const query: PooledQuery = {
          statement,
          phase: undefined,
          connection: undefined,
          hasPermit: false,
          timer: undefined,
          failWaiting: () => {
            resume(Effect.fail(this.#findWaitError(query)))
            running.interruptUnsafe()
          }
        }
        this.#move(query, "waiting")
        const running = Effect.runForkWith(context)(this.#runWithPermit(query))
        running.addObserver((exit) => {
          this.#move(query, undefined)
          resume(exit)
        })
        return Effect.sync(() => {
          this.#move(query, undefined)
          running.interruptUnsafe()
        })
      })
    )
    return Effect.map(result, ({ rows }) => rows as ReadonlyArray<Row>)
  }

  #runWithPermit(query: PooledQuery): Effect.Effect<Result, SqlError> {
    const attempts = Effect.suspend(() => {
      query.hasPermit = true
      return this.#attempt(query, "first")
    })
    const { workspace } = query.statement
    if (workspace === undefined) return attempts
    const permitted = Effect.flatMap(RcMap.get(this.#permits, workspace), (permits) =>
      permits.withPermit(attempts)
    )
    return Effect.scoped(permitted)
  }

  /**
   * Runs a query on a connection of the pool. If the connection is lost, tries another connection. The pool's other
   * connections are often lost too, so `#attempt` gives up only after a further attempt on a new connection.
   */
  #attempt(query: PooledQuery, attempt: "first" | "retry"): Effect.Effect<Result, SqlError> {
    let wasUsed = false
    const result = this.#pool.use((connection) => {
      wasUsed = this.#hasOwnSession.has(connection)
      return this.#send(query, connection)
    })
    return Effect.catchIf(result, isConnectionLost, (error) => {
      if (attempt === "retry" && !wasUsed) return Effect.fail(error)
      const discard = query.connection === undefined ? Effect.void : this.#pool.invalidate(query.connection)
      query.connection = undefined
      this.#move(query, "waiting")
      return Effect.andThen(discard, this.#attempt(query, "retry"))
    })
  }

  /**
   * Sends a query's statement. The first statement on a connection also sets up the session, in the same round trip. If
   * the setup fails, the query fails too, because the connection may lead to a server that must not run the query.
   */
  #send(query: PooledQuery, connection: PgConnection) {
    const hasOwnSession = this.#hasOwnSession.get(connection)
    query.connection = connection
    this.#move(query, "running")
    const { text, params } = query.statement
    const result = Effect.onInterrupt(connection.query(text, params, hasOwnSession === true), () =>
      this.#pool.invalidate(connection)
    )
    if (hasOwnSession !== undefined) return result
    const setUp = Effect.map(this.#setUpSession(connection), (isOwn) =>
      this.#hasOwnSession.set(connection, isOwn)
    )
    return Effect.zipWith(setUp, result, (_, result) => result, { concurrent: true })
  }

  /** Moves a query to a phase; `undefined` means that the query is done. */
  #move(query: PooledQuery, phase: Phase | undefined): void {
    if (query.phase !== undefined) this.#gauges[query.phase].modifyUnsafe(-1, metricRegistry)
    if (query.phase === "running") this.#running--
    if (phase !== undefined) this.#gauges[phase].modifyUnsafe(1, metricRegistry)
    if (phase === "running") this.#running++
    query.phase = phase
    clearTimeout(query.timer)
    if (phase === "waiting") query.timer = setTimeout(() => query.failWaiting(), connectTimeoutMs)
  }

  #findWaitError({ hasPermit }: PooledQuery): SqlError {
    return hasPermit && this.#running < this.#maxConnections ? connectTimeoutError : poolExhaustedError
  }
}

/**
 * Opens a pool of connections, which closes with the scope. Returns the function that runs queries on the pool.
 *
 * @param pool the pool's name in metrics
 */
export const makeQuery = (
  config: PgClient.PgPoolConfig,
  pool: string,
  maxConnections: number,
  onSqlError: SqlErrorHandler,
  setUpSession: SetUpSession
): Effect.Effect<Query, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* PgPool.make({ ...config, maxConnections })
    const max = makeGauge(
      pool,
      "max",
      "Maximum number of statements that the pool's connections run at the same time"
    )
    const changeMax = (change: number) => Effect.sync(() => max.modifyUnsafe(change, metricRegistry))
    yield* Effect.acquireRelease(changeMax(maxConnections), () => changeMax(-maxConnections))
    const permits = yield* RcMap.make({
      lookup: (_: WorkspaceId) => Semaphore.make(Math.max(1, maxConnections - 1))
    })
    const queries = new QueryPool(connections, pool, maxConnections, setUpSession, permits)
    return (statement) => Effect.catch(queries.run(statement), onSqlError)
  })
