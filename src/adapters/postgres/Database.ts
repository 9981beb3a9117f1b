import * as PgClient from "@effect/sql-pg/PgClient"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { ConnectionError, isSqlError, SqlError } from "effect/sql/SqlError"
import { type PoolUse, poolUse } from "../../application/Metrics.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { makeTypes } from "./Timestamps.ts"

/** A PostgreSQL server, or the embedded database behind the unix socket with exactly this path. */
export type DatabaseOptions = { readonly url: Redacted.Redacted } | { readonly socketPath: string }

/** One SQL statement, its parameters as `$1`, `$2`, … */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

export type Row = PgConnection.Row

/** How long a read may wait for a connection, and how much longer it may take in all (DESIGN.md section 8). */
const connectDeadline = "1 second"
const answerDeadline = "3 seconds"

/** How many statements share a connection. */
const multiplexConcurrency = 8

/** How many connections reads, large reads and look-ups of keys have. The numbers of a service's connections add up to 12. */
const connections = { read: 3, largeRead: 1, lookUp: 2 } as const

const statementTimeout = 3000

/** The largest row is what a prompt is resolved from: its content, its fragments and their overrides. */
const maxMessageSize = 128 * 1024 * 1024

/**
 * Without a minimum of connections, so that it can be built while PostgreSQL is away. PgBouncer refuses startup
 * parameters other than these, so `makeRead` sets `statement_timeout` once a connection is made.
 */
const configOf = (options: DatabaseOptions): PgClient.PgPoolConfig => ({
  ...("url" in options
    ? { url: options.url }
    : { path: options.socketPath, username: "postgres", database: "postgres", prepare: false }),
  connectTimeout: connectDeadline,
  startupParameters: { application_name: "prompt-retrieval", TimeZone: "UTC" },
  types: makeTypes(),
  maxConnections: 4,
  multiplex: true,
  multiplexConcurrency,
  maxMessageSize
})

/** The five characters of SQLSTATE, where PostgreSQL itself reported the error. */
export const sqlState = ({ reason }: SqlError): string => {
  const code = (reason.cause as { readonly code?: unknown } | undefined)?.code
  return typeof code === "string" ? code : ""
}

/** The connection was lost or refused; 57P0x is a server that stops or starts. */
const isLost = (error: SqlError): boolean =>
  error.reason._tag === "ConnectionError" || sqlState(error).startsWith("57P0")

/** Lost, not to be had, or not answering in time. Class 53 is a server out of connections, memory or disk. */
const isUnavailable = (error: SqlError): boolean =>
  isLost(error) ||
  error.reason.operation === "connect" ||
  error.reason._tag === "StatementTimeoutError" ||
  error.reason._tag === "LockTimeoutError" ||
  error.reason._tag === "DeadlockError" ||
  error.reason._tag === "SerializationError" ||
  sqlState(error).startsWith("53")

const connectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** What PostgreSQL or the system said, apart from the driver's own words: never a value of a row. */
export const reasonOf = ({ reason }: SqlError): string => {
  const { code = "", message = "" } = reason.cause as Partial<NodeJS.ErrnoException>
  return message || code || reason._tag
}

type OrUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

/** No outage: so many statements are running that the pool takes no further one. */
const allBusy = connectionError("the pool's connections are all busy")
const noConnection = connectionError("no connection was made in time")
const noAnswer = connectionError("no answer in time")

/** Why a statement failed, where the reason is not that PostgreSQL is away. */
type Condition = "pool exhausted" | "no response" | "statement timeout" | "canceled" | "refused"

const conditionOf = (error: SqlError): Condition | "away" => {
  if (error === allBusy) return "pool exhausted"
  if (error === noAnswer) return "no response"
  switch (error.reason._tag) {
    case "StatementTimeoutError":
      return reasonOf(error).includes("statement timeout") ? "statement timeout" : "canceled"
    case "LockTimeoutError":
    case "DeadlockError":
    case "SerializationError":
      return "refused"
    default: {
      const code = sqlState(error)
      return code.startsWith("53") && code !== "53300" ? "refused" : "away"
    }
  }
}

const lineOf = (condition: Condition | "away", error: SqlError): string => {
  switch (condition) {
    case "away":
      return `PostgreSQL is unavailable: ${reasonOf(error)}`
    case "pool exhausted":
      return `A read waited 1 s while all connections of its pool were busy; responded 503`
    case "no response":
      return `A read got no response from PostgreSQL for ${answerDeadline}; responded 503`
    case "statement timeout":
      return `A read exceeded the ${statementTimeout / 1000} s statement timeout; responded 503`
    case "canceled":
    case "refused":
      return `PostgreSQL did not complete a statement (${reasonOf(error)}); responded 503`
  }
}

/** A condition that recurs within this many milliseconds is still the same one, whatever else has succeeded meanwhile. */
const sameCondition = 60_000

/**
 * The one place that decides which errors are the port's `Unavailable`; any other is a defect. Logs one line when
 * PostgreSQL becomes unavailable, and one when reads begin to fail for another reason. A success ends an outage; other
 * conditions end when none has occurred for a while, because the reads beside the failing ones succeed all the time.
 */
const makeOrUnavailable = (): OrUnavailable => {
  const lastTimes = new Map<Condition | "away", number>()
  const isNew = (condition: Condition | "away"): boolean => {
    const now = performance.now()
    const last = lastTimes.get(condition)
    lastTimes.set(condition, now)
    return last === undefined || (condition !== "away" && now - last > sameCondition)
  }
  const unavailable = (error: SqlError) =>
    Effect.suspend(() => {
      const condition = conditionOf(error)
      const log = isNew(condition) ? Effect.logWarning(lineOf(condition, error)) : Effect.void
      return Effect.andThen(log, Effect.fail(Unavailable))
    })
  return <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    effect.pipe(
      Effect.map((value) => {
        if (lastTimes.size > 0) lastTimes.delete("away")
        return value
      }),
      Effect.catchIf(isSqlError, (error) => (isUnavailable(error) ? unavailable(error) : Effect.die(error)))
    ) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
}

export type Read = (statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Unavailable>

/** What a statement does: it waits for its connection, then it runs. */
type Phase = "waiting" | "running"

const setStatementTimeout = `set statement_timeout = ${statementTimeout}`

/** How many statements of a pool are in each phase. */
const makePhases = (use: PoolUse) => {
  const counts = { waiting: 0, running: 0 }
  const count = (phase: Phase, change: 1 | -1): void => {
    counts[phase] += change
    use[phase](change)
  }
  return {
    counts,
    /** Takes one statement from phase to phase, `undefined` when it is done. */
    start: () => {
      let phase: Phase | undefined
      return (next: Phase | undefined): void => {
        if (phase !== undefined) count(phase, -1)
        if (next !== undefined) count(next, 1)
        phase = next
      }
    }
  }
}

/**
 * Reads over connections of its own. A connection on which a read met its deadline is not used again: its other end
 * may be gone without a word. That the connections are shared makes the deadline hold: only there does the driver
 * not wait for PostgreSQL when it is interrupted.
 *
 * A lost connection rarely goes alone, and others may not know yet that they are lost: a read is repeated on one that
 * was made after the loss. Connections are therefore counted by generation, and every loss of the newest begins another.
 *
 * The first read on a connection sets the statement timeout in the same round trip.
 */
const makeRead = (
  config: PgClient.PgPoolConfig,
  name: string,
  maxConnections: number,
  orUnavailable: OrUnavailable
): Effect.Effect<Read, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const pool = yield* PgPool.make({ ...config, maxConnections })
    /** The one session of the embedded database knows no timeout. */
    const isServer = config.path === undefined
    const limit = maxConnections * multiplexConcurrency
    const statements = makePhases(yield* poolUse(name, limit))
    const notToBeHad = Effect.suspend(() =>
      Effect.fail(statements.counts.running < limit ? noConnection : allBusy)
    )

    let newest = 0
    const generations = new WeakMap<PgConnection.PgConnection, number>()
    const generationOf = (connection: PgConnection.PgConnection): number => {
      const known = generations.get(connection)
      if (known === undefined) generations.set(connection, newest)
      return known ?? newest
    }
    const lose = (connection: PgConnection.PgConnection): Effect.Effect<void> => {
      if (generationOf(connection) === newest) newest++
      return pool.invalidate(connection)
    }
    const latest: typeof pool.get = Effect.flatMap(pool.get, (connection) =>
      generationOf(connection) === newest
        ? Effect.succeed(connection)
        : Effect.andThen(pool.invalidate(connection), latest)
    )
    const latestInTime = Effect.timeoutOrElse(latest, { duration: connectDeadline, orElse: () => notToBeHad })

    return ({ text, params }) =>
      Effect.suspend(() => {
        const enter = statements.start()
        let used: PgConnection.PgConnection | undefined
        const query = (connection: PgConnection.PgConnection) => {
          const isFirst = isServer && !generations.has(connection)
          generationOf(connection)
          used = connection
          enter("running")
          const result = connection.query(text, params)
          return isFirst
            ? Effect.zipWith(connection.query(setStatementTimeout, []), result, (_, result) => result, {
                concurrent: true
              })
            : result
        }
        const again = Effect.suspend(() => {
          enter("waiting")
          const loss = used === undefined ? Effect.void : lose(used)
          return Effect.andThen(loss, Effect.scoped(Effect.flatMap(latestInTime, query)))
        })
        const deadlines = Effect.andThen(
          Effect.sleep(connectDeadline),
          Effect.suspend(() =>
            used === undefined
              ? notToBeHad
              : Effect.sleep(answerDeadline).pipe(
                  Effect.andThen(Effect.suspend(() => pool.invalidate(used!))),
                  Effect.andThen(Effect.fail(noAnswer))
                )
          )
        )
        enter("waiting")
        return pool.use(query).pipe(
          Effect.catchIf(isLost, () => again),
          Effect.raceFirst(deadlines),
          Effect.onExit(() => Effect.sync(() => enter(undefined))),
          Effect.map(({ rows }) => rows),
          orUnavailable
        )
      })
  })

/** PostgreSQL, as the adapters of this folder use it. */
export class Database extends Context.Service<
  Database,
  {
    /** The rows of one statement that changes nothing, tried a second time when its connection is lost. */
    readonly read: Read
    /** As `read`, over connections of its own: no other read waits behind the rows that it sends. */
    readonly readLarge: Read
    /** As `read`, over connections of its own: the look-up of a key never waits behind a slow read. */
    readonly lookUp: Read
    /**
     * Runs statements of `PgClient` in one transaction, each without a limit of time. Errors of SQL that are no
     * outage are defects, unless `work` catches them.
     */
    readonly transact: <A, E, R>(
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
  }
>()("prompt-retrieval/PostgresDatabase") {
  /** Connections come up when they are first needed and again whenever they are lost: building this never fails. */
  static readonly layer = (
    options: DatabaseOptions
  ): Layer.Layer<Database | PgClient.PgClient | SqlClient> => {
    const config = configOf(options)
    return Layer.effect(
      Database,
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const orUnavailable = makeOrUnavailable()
        return Database.of({
          read: yield* makeRead(config, "read", connections.read, orUnavailable),
          readLarge: yield* makeRead(config, "read", connections.largeRead, orUnavailable),
          lookUp: yield* makeRead(config, "lookup", connections.lookUp, orUnavailable),
          transact: (work) =>
            orUnavailable(sql.withTransaction(Effect.andThen(sql`set local statement_timeout = 0`, work)))
        })
      })
    ).pipe(Layer.provideMerge(PgClient.layer(config)), Layer.orDie)
  }
}
