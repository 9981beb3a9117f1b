import * as PgClient from "@effect/sql-pg/PgClient"
import type * as PgConnection from "@effect/sql-pg/PgConnection"
import * as PgPool from "@effect/sql-pg/PgPool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { isSqlError, SqlError, StatementTimeoutError } from "effect/sql/SqlError"
import { poolUse } from "../../application/Metrics.ts"
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

/** How long a read may take in all, and how long it may wait for a connection (DESIGN.md section 8). */
const readDeadline = "4 seconds"
const connectDeadline = "1 second"

/** How many statements share a connection. */
const multiplexConcurrency = 8

/** The largest row is what a prompt is resolved from: its content, its fragments and their overrides. */
const maxMessageSize = 128 * 1024 * 1024

/** Without a minimum of connections, so that it can be built while PostgreSQL is away. */
const configOf = (options: DatabaseOptions): PgClient.PgPoolConfig => ({
  ...("url" in options
    ? { url: options.url }
    : { path: options.socketPath, username: "postgres", database: "postgres", prepare: false }),
  connectTimeout: connectDeadline,
  startupParameters: {
    application_name: "prompt-retrieval",
    statement_timeout: "3000",
    TimeZone: "UTC"
  },
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

/** A deadline of this program's own. It is no lost connection, so nothing is tried again. */
const late = (message: string): SqlError =>
  new SqlError({ reason: new StatementTimeoutError({ cause: new Error(message), message }) })

/** What PostgreSQL or the system said, apart from the driver's own words: never a value of a row. */
export const reasonOf = ({ reason }: SqlError): string => {
  const { code = "", message = "" } = reason.cause as Partial<NodeJS.ErrnoException>
  return message || code || reason._tag
}

type OrUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E, R>
) => Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

/**
 * The one place that decides which errors are the port's `Unavailable`; any other is a defect. The first of an outage
 * is logged.
 */
const makeOrUnavailable = (): OrUnavailable => {
  let available = true
  const unavailable = (error: SqlError) =>
    Effect.suspend(() => {
      const log = available ? Effect.logWarning(`PostgreSQL is unavailable: ${reasonOf(error)}`) : Effect.void
      available = false
      return Effect.andThen(log, Effect.fail(Unavailable))
    })
  return <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    effect.pipe(
      Effect.tap(() => {
        available = true
        return Effect.void
      }),
      Effect.catchIf(isSqlError, (error) => (isUnavailable(error) ? unavailable(error) : Effect.die(error)))
    ) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>
}

type Read = (statement: Statement) => Effect.Effect<ReadonlyArray<Row>, Unavailable>

/**
 * Reads over connections of its own. A connection on which a read met its deadline is not used again: its other end
 * may be gone without a word. That the connections are shared makes the deadline hold: only there does the driver
 * not wait for PostgreSQL when it is interrupted.
 */
const makeRead = (
  config: PgClient.PgPoolConfig,
  name: string,
  maxConnections: number,
  orUnavailable: OrUnavailable
): Effect.Effect<Read, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    const pool = yield* PgPool.make({ ...config, maxConnections })
    const { waiting, running } = yield* poolUse(name, maxConnections * multiplexConcurrency)
    const connection = Effect.timeoutOrElse(pool.get, {
      duration: connectDeadline,
      orElse: () => Effect.fail(late("every connection of the pool is busy"))
    })
    return ({ text, params }) =>
      Effect.suspend(() => {
        let used: PgConnection.PgConnection | undefined
        const attempt = Effect.scoped(
          Effect.flatMap(waiting(connection), (connection) => {
            used = connection
            return running(connection.query(text, params))
          })
        )
        const abandon = Effect.suspend(() => (used === undefined ? Effect.void : pool.invalidate(used)))
        return attempt.pipe(
          Effect.catchIf(isLost, () => attempt),
          Effect.timeoutOrElse({
            duration: readDeadline,
            orElse: () => Effect.andThen(abandon, Effect.fail(late("no answer in time")))
          }),
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
          read: yield* makeRead(config, "read", 4, orUnavailable),
          lookUp: yield* makeRead(config, "lookup", 2, orUnavailable),
          transact: (work) =>
            orUnavailable(sql.withTransaction(Effect.andThen(sql`set local statement_timeout = 0`, work)))
        })
      })
    ).pipe(Layer.provideMerge(PgClient.layer(config)), Layer.orDie)
  }
}
