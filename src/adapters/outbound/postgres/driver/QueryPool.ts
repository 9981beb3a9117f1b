import type * as PgClient from "@effect/sql-pg/PgClient"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as RcMap from "effect/RcMap"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { SqlError } from "effect/sql/SqlError"
import { metricRegistry } from "../../../../application/observability/Instrumentation.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Query, Row, Statement } from "./Query.ts"
import {
  connectTimeoutError,
  connectTimeoutMs,
  isConnectionLost,
  poolExhaustedError,
  responseTimeoutError,
  responseTimeoutMs,
  type SqlErrorHandler
} from "./SqlErrors.ts"

// The pool

/**
 * How long a query may stay in each phase, in milliseconds. A query first waits for a permit and a connection, and then
 * runs.
 */
const phaseTimeoutMs = { waiting: connectTimeoutMs, running: responseTimeoutMs }
type Phase = keyof typeof phaseTimeoutMs

/** Registers the gauges of a pool, and returns the gauge of each phase. */
const makeGauges = Effect.fnUntraced(function* (pool: string, maxConnections: number) {
  const makeGauge = (name: string, description: string) =>
    Metric.gauge(`prompt_retrieval_postgres_statements_${name}`, { description, attributes: { pool } })
  const max = makeGauge(
    "max",
    "Maximum number of statements that the pool's connections run at the same time"
  )
  yield* Effect.acquireRelease(Metric.modify(max, maxConnections), () => Metric.modify(max, -maxConnections))
  return {
    waiting: makeGauge("waiting", "Statements that wait for a connection of the pool"),
    running: makeGauge("running", "Statements in flight on the pool's connections")
  }
})

interface PooledQuery {
  readonly statement: Statement
  phase?: Phase | undefined
  /** True once the query has the permit of its workspace. */
  hasPermit: boolean
  /** Fails the query. The timer calls this function when a phase exceeds its time. */
  readonly fail: () => void
  timer?: NodeJS.Timeout | undefined
}

/**
 * Opens a pool of connections for the lifetime of the scope, and returns the function that runs queries on the pool.
 *
 * A query fails if a phase exceeds its time. If a running query fails in this way or is interrupted, the pool discards
 * the connection, because the server may be silently gone. The connections must be multiplexed, because only a
 * multiplexed connection can interrupt a statement without waiting for the server.
 *
 * @param name the pool's name in metrics
 * @param setUpSession runs once per connection. Succeeds with true if statements can be prepared in the session
 */
export const makeQuery = Effect.fnUntraced(function* (
  config: PgClient.PgPoolConfig,
  name: string,
  maxConnections: number,
  onSqlError: SqlErrorHandler,
  setUpSession: (connection: PgConnection) => Effect.Effect<boolean, SqlError>
): Effect.fn.Return<Query, SqlError, Scope.Scope> {
  const pool = yield* PgPool.make({ ...config, maxConnections })
  const gauges = yield* makeGauges(name, maxConnections)
  let running = 0
  // A slow statement blocks its whole connection. If the pool has several connections, one of them stays free for other
  // workspaces.
  const permitsPerWorkspace = Math.max(1, maxConnections - 1)
  const permits = yield* RcMap.make({ lookup: (_: WorkspaceId) => Semaphore.make(permitsPerWorkspace) })
  /**
   * Maps a connection to true if its session belongs to the connection alone, and to false otherwise. A connection has
   * no entry until its session is set up. With false, the pool prepares no statements, because a pooler can run each
   * statement in another session.
   */
  const ownSessions = new WeakMap<PgConnection, boolean>()

  const count = (phase: Phase | undefined, change: 1 | -1): void => {
    if (phase === undefined) return
    if (phase === "running") running += change
    gauges[phase].modifyUnsafe(change, metricRegistry)
  }

  /** Moves a query to a phase; `undefined` means that the query is done. */
  const move = (query: PooledQuery, phase: Phase | undefined): void => {
    count(query.phase, -1)
    count(phase, 1)
    query.phase = phase
    clearTimeout(query.timer)
    query.timer = undefined
    if (phase === undefined) return
    // Timers run before I/O. With `setImmediate`, a response that has already arrived is read before the query fails.
    const timer = setTimeout(
      () => setImmediate(() => query.timer === timer && query.fail()),
      phaseTimeoutMs[phase]
    )
    query.timer = timer
  }

  const findTimeoutError = ({ phase, hasPermit }: PooledQuery): SqlError => {
    if (phase === "running") return responseTimeoutError
    return hasPermit && running < maxConnections ? connectTimeoutError : poolExhaustedError
  }

  /**
   * Sends a query's statement. The first statement on a connection also sets up the session, in the same round trip. If
   * the setup fails, the query fails too, because the connection could lead to a server that must not run the query.
   */
  const send = (query: PooledQuery, connection: PgConnection) => {
    const isOwnSession = ownSessions.get(connection)
    move(query, "running")
    const { text, params } = query.statement
    const sent = Effect.map(connection.query(text, params, isOwnSession === true), ({ rows }) => rows)
    const rows = Effect.onInterrupt(sent, () => pool.invalidate(connection))
    if (isOwnSession !== undefined) return rows
    const setUp = Effect.map(setUpSession(connection), (isOwn) => ownSessions.set(connection, isOwn))
    return Effect.zipWith(setUp, rows, (_, rows) => rows, { concurrent: true })
  }

  /**
   * Runs a query on a connection of the pool. If the connection is lost, tries another connection. The pool's other
   * connections are often lost too, so `attempt` gives up only after a retry on a new connection.
   */
  const attempt = (query: PooledQuery, isRetry: boolean): Effect.Effect<ReadonlyArray<Row>, SqlError> => {
    let connection: PgConnection | undefined
    let wasUsed = false
    const result = pool.use((free) => {
      connection = free
      wasUsed = ownSessions.has(free)
      return send(query, free)
    })
    return Effect.catchIf(result, isConnectionLost, (error) => {
      if (isRetry && !wasUsed) return Effect.fail(error)
      move(query, "waiting")
      const discard = connection === undefined ? Effect.void : pool.invalidate(connection)
      return Effect.andThen(discard, attempt(query, true))
    })
  }

  const runWithPermit = (query: PooledQuery) => {
    const result = Effect.suspend(() => {
      query.hasPermit = true
      return attempt(query, false)
    })
    const { workspace } = query.statement
    if (workspace === undefined) return result
    return Effect.scoped(Effect.flatMap(RcMap.get(permits, workspace), (own) => own.withPermit(result)))
  }

  const run = (statement: Statement) =>
    Effect.withFiber(({ context }) =>
      Effect.callback<ReadonlyArray<Row>, SqlError>((resume) => {
        const query: PooledQuery = {
          statement,
          hasPermit: false,
          fail: () => {
            resume(Effect.fail(findTimeoutError(query)))
            fiber.interruptUnsafe()
          }
        }
        move(query, "waiting")
        const fiber = Effect.runForkWith(context)(runWithPermit(query))
        fiber.addObserver((exit) => {
          move(query, undefined)
          resume(exit)
        })
        return Effect.sync(() => {
          move(query, undefined)
          fiber.interruptUnsafe()
        })
      })
    )

  return (statement) => Effect.catch(run(statement), onSqlError)
})

// Lookups that share statements of the pool

/** Maximum number of keys of a statement. With more keys, PostgreSQL and this process would not work in parallel. */
const maxBatchSize = 16

/** A request for the row of one key. */
class Lookup<Key> extends Request.Class<{ readonly key: Key }, Row | undefined, Unavailable> {
  /** Runs when the caller is interrupted. Undefined until the statement is sent. */
  leave?: () => void
}

const decodeRow = Schema.decodeUnknownSync(Schema.Struct({ ordinal: Schema.Int }))

/** Returns the column `ordinal` of a row. */
export const decodeOrdinal = (row: Row): number => decodeRow(row).ordinal

/**
 * Returns a function that reads one row by its key. Up to `maxBatchSize` keys of a partition that are requested in the
 * same turn of the event loop share a statement. Sharing saves work, because an additional statement costs PostgreSQL
 * and this process more than an additional row. If all callers of a statement are interrupted, the statement is
 * interrupted.
 *
 * @param makeStatement makes the statement for some keys. The statement returns at most one row per key. The column
 * `ordinal` of a row is the position of its key, counted from 1.
 * @param partitionKey returns the partition of a key. Only keys of the same partition share a statement, because a
 * failure or a delay of a statement affects all its keys.
 */
export const makeBatchedLookup = <Key>(
  query: Query,
  makeStatement: (keys: ReadonlyArray<Key>) => Statement,
  partitionKey: (key: Key) => string
): ((key: Key) => Effect.Effect<Row | undefined, Unavailable>) => {
  const resolver = RequestResolver.makeGrouped<Lookup<Key>, string>({
    key: ({ request }) => partitionKey(request.key),
    resolver: Effect.fnUntraced(function* (lookups) {
      const fiber = yield* Effect.fiber
      let callers = lookups.length
      const leave = () => {
        if (--callers === 0) fiber.interruptUnsafe()
      }
      for (const { request } of lookups) request.leave = leave
      const rows = yield* query(makeStatement(lookups.map(({ request }) => request.key)))
      const rowsByOrdinal = new Map(rows.map((row) => [decodeOrdinal(row), row]))
      for (const [index, lookup] of lookups.entries())
        lookup.completeUnsafe(Exit.succeed(rowsByOrdinal.get(index + 1)))
    })
  }).pipe(RequestResolver.batchN(maxBatchSize))
  return (key) =>
    Effect.suspend(() => {
      const lookup = new Lookup<Key>({ key })
      return Effect.onInterrupt(Effect.request(lookup, resolver), () => Effect.sync(() => lookup.leave?.()))
    })
}
