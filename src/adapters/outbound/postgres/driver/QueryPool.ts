import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as RcMap from "effect/RcMap"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgPool from "@effect/sql-pg/PgPool"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import { type Codec, encode, makeRegistry, OID, type Registry } from "@effect/sql-pg/PgTypes"
import type { SqlError } from "effect/sql/SqlError"
import { metricRegistry } from "../../../../application/observability/Instrumentation.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { type Timestamp, toTimestamp } from "../../../../domain/Timestamp.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Query, Row, Statement } from "./Query.ts"
import {
  connectTimeoutError,
  connectTimeoutMs,
  isConnectionLost,
  poolExhaustedError,
  type SqlErrorHandler
} from "./SqlErrors.ts"

/** Milliseconds from the Unix epoch to PostgreSQL's epoch, 2000-01-01. */
const postgresEpoch = 946_684_800_000

const timestampCodec: Codec<Timestamp> = {
  encode: (value) => encode(Date.parse(value), OID.timestamptz),
  decode: (bytes) => {
    const micros = new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0)
    return Result.succeed(toTimestamp(Number(micros / 1000n) + postgresEpoch))
  }
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

/** The codec of `text`. The driver's own codec deletes a leading U+FEFF from a text that contains U+FFFD. */
const textCodec: Codec<string> = {
  encode: (value) => encode(value, OID.text),
  decode: (bytes) => Result.succeed(utf8.decode(bytes))
}

/** Returns the driver's types, except that `timestamptz` is decoded to `Timestamp` and a text keeps every U+FEFF. */
export const makeColumnTypes = (): Registry => {
  const types = makeRegistry()
  types.register(OID.timestamptz, timestampCodec, { arrayOid: OID.timestamptzArray })
  types.register(OID.text, textCodec, { arrayOid: OID.textArray })
  return types
}

/** A statement first waits for a permit of its workspace and for a connection, then runs. */
type Phase = "waiting" | "running"

/** Registers the gauges of a pool, and returns the gauge of each phase. */
const makeGauges = Effect.fnUntraced(function* (pool: string, maxConnections: number) {
  const makeGauge = (name: string, description: string) =>
    Metric.gauge(`prompt_retrieval_postgres_statements_${name}`, { description, attributes: { pool } })
  const max = makeGauge(
    "max",
    "Maximum number of statements that the pool's connections run at the same time"
  )
  const changeMax = (change: number) => Effect.sync(() => max.modifyUnsafe(change, metricRegistry))
  yield* Effect.acquireRelease(changeMax(maxConnections), () => changeMax(-maxConnections))
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
  /** Fails the query. Runs when the query has waited for `connectTimeoutMs`. */
  readonly failWaiting: () => void
  timer?: NodeJS.Timeout
}

/**
 * Opens a pool of connections, which closes with the scope. Returns the function that runs queries on the pool.
 *
 * A query fails if it waits longer than `connectTimeoutMs` for a connection. If the caller of a running query is
 * interrupted, for example by its deadline, the pool discards the connection, because the server may be silently gone.
 * The connections must be multiplexed, because only multiplexed connections can be interrupted without waiting for the
 * server.
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
  const counts = { waiting: 0, running: 0 }
  // A slow statement blocks its whole connection. If there are several connections, one stays free for other workspaces.
  const permitsPerWorkspace = Math.max(1, maxConnections - 1)
  const permits = yield* RcMap.make({ lookup: (_: WorkspaceId) => Semaphore.make(permitsPerWorkspace) })
  /**
   * For each connection whose session is set up: true if the session belongs to this connection alone. Statements on
   * other connections are not prepared, because a pooler may run each statement in another session.
   */
  const hasOwnSession = new WeakMap<PgConnection, boolean>()

  const count = (phase: Phase | undefined, change: 1 | -1): void => {
    if (phase === undefined) return
    counts[phase] += change
    gauges[phase].modifyUnsafe(change, metricRegistry)
  }

  /** Moves a query to a phase; `undefined` means that the query is done. */
  const move = (query: PooledQuery, phase: Phase | undefined): void => {
    count(query.phase, -1)
    count(phase, 1)
    query.phase = phase
    clearTimeout(query.timer)
    if (phase === "waiting") query.timer = setTimeout(query.failWaiting, connectTimeoutMs)
  }

  const findWaitError = ({ hasPermit }: PooledQuery): SqlError =>
    hasPermit && counts.running < maxConnections ? connectTimeoutError : poolExhaustedError

  /**
   * Sends a query's statement. The first statement on a connection also sets up the session, in the same round trip. If
   * the setup fails, the query fails too, because the connection may lead to a server that must not run the query.
   */
  const send = (query: PooledQuery, connection: PgConnection) => {
    const isOwnSession = hasOwnSession.get(connection)
    move(query, "running")
    const { text, params } = query.statement
    const sent = Effect.map(connection.query(text, params, isOwnSession === true), ({ rows }) => rows)
    const rows = Effect.onInterrupt(sent, () => pool.invalidate(connection))
    if (isOwnSession !== undefined) return rows
    const setUp = Effect.map(setUpSession(connection), (isOwn) => hasOwnSession.set(connection, isOwn))
    return Effect.zipWith(setUp, rows, (_, rows) => rows, { concurrent: true })
  }

  /**
   * Runs a query on a connection of the pool. If the connection is lost, tries another connection. The pool's other
   * connections are often lost too, so `attempt` gives up only after a further attempt on a new connection.
   */
  const attempt = (query: PooledQuery, isRetry: boolean): Effect.Effect<ReadonlyArray<Row>, SqlError> => {
    let connection: PgConnection | undefined
    let wasUsed = false
    const result = pool.use((free) => {
      connection = free
      wasUsed = hasOwnSession.has(free)
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
          failWaiting: () => {
            resume(Effect.fail(findWaitError(query)))
            running.interruptUnsafe()
          }
        }
        move(query, "waiting")
        const running = Effect.runForkWith(context)(runWithPermit(query))
        running.addObserver((exit) => {
          move(query, undefined)
          resume(exit)
        })
        return Effect.sync(() => {
          move(query, undefined)
          running.interruptUnsafe()
        })
      })
    )

  return (statement) => Effect.catch(run(statement), onSqlError)
})

/** Maximum number of keys of a statement. With more keys, PostgreSQL and this process would not work in parallel. */
const maxBatchSize = 16

interface Lookup<Key> {
  readonly key: Key
  readonly resume: (exit: Exit.Exit<Row | undefined, Unavailable>) => void
}

/** The lookups of a partition that share a statement. */
interface Batch<Key> {
  readonly partition: string
  /** The lookups whose callers still wait. */
  readonly lookups: Set<Lookup<Key>>
  /** Runs the statement; undefined until the statement is sent. */
  fiber?: Fiber.Fiber<unknown, Unavailable>
}

const decodeRow = Schema.decodeUnknownSync(Schema.Struct({ ordinal: Schema.Int }))

/** Returns the column `ordinal` of a row. */
export const decodeOrdinal = (row: Row): number => decodeRow(row).ordinal

/**
 * Returns a function that reads one row by its key. A key is looked up immediately if no statement of its partition is
 * in flight. Otherwise, up to `maxBatchSize` keys of the partition that are requested in the same turn of the event
 * loop share a statement. This saves work, because an additional statement costs PostgreSQL and this process more than
 * an additional row. If all callers of a statement are interrupted, the statement is interrupted.
 *
 * Does not use Effect's `RequestResolver`, because its sets keep completed requests alive until the next full garbage
 * collection. This made the pauses of minor collections six times as long.
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
): Effect.Effect<(key: Key) => Effect.Effect<Row | undefined, Unavailable>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const fork = Effect.runForkWith(context)
    /** The batches that are not sent yet, by partition. */
    const openBatches = new Map<string, Batch<Key>>()
    /** The number of statements in flight, by partition. */
    const inFlight = new Map<string, number>()

    const countInFlight = (partition: string, change: 1 | -1): void => {
      const count = (inFlight.get(partition) ?? 0) + change
      if (count === 0) inFlight.delete(partition)
      else inFlight.set(partition, count)
    }

    /** Sends the statement of a batch, unless the statement is already sent or no caller waits for its rows. */
    const send = (batch: Batch<Key>): void => {
      if (batch.fiber !== undefined) return
      openBatches.delete(batch.partition)
      const lookups = [...batch.lookups]
      if (lookups.length === 0) return
      const statement = makeStatement(lookups.map(({ key }) => key))
      const rowsByOrdinal = Effect.map(
        query(statement),
        (rows) => new Map(rows.map((row) => [decodeOrdinal(row), row]))
      )
      countInFlight(batch.partition, 1)
      const fiber = fork(rowsByOrdinal)
      batch.fiber = fiber
      fiber.addObserver((exit) => {
        countInFlight(batch.partition, -1)
        for (const [index, { resume }] of lookups.entries())
          resume(Exit.map(exit, (found) => found.get(index + 1)))
      })
    }

    return (key) =>
      Effect.callback((resume) => {
        const lookup: Lookup<Key> = { key, resume }
        const partition = partitionKey(key)
        const batch = openBatches.get(partition) ?? { partition, lookups: new Set() }
        openBatches.set(partition, batch)
        batch.lookups.add(lookup)
        if (!inFlight.has(partition) || batch.lookups.size === maxBatchSize) send(batch)
        else if (batch.lookups.size === 1) setImmediate(send, batch)
        return Effect.sync(() => {
          batch.lookups.delete(lookup)
          if (batch.lookups.size === 0) batch.fiber?.interruptUnsafe()
        })
      })
  })
