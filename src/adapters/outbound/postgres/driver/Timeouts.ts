import * as Duration from "effect/Duration"
import { ConnectionError, SqlError } from "effect/sql/SqlError"

/** How long a query may wait for a connection. */
export const connectTimeout = "1 second"

const connectTimeoutMs = Duration.toMillis(connectTimeout)

/** How long a query may take after the end of `connectTimeout`, if it has a connection. */
export const queryTimeout = "3 seconds"
const queryTimeoutMs = Duration.toMillis(queryTimeout)

/** How long PostgreSQL may work on the statement of a query, in milliseconds. */
export const statementTimeoutMs = 3000

/**
 * How long a query may wait for a connection, and how long a query with a connection may take after that time, in
 * milliseconds.
 */
export interface Deadlines {
  readonly connectMs: number
  readonly queryMs: number
}

export const defaultDeadlines: Deadlines = { connectMs: connectTimeoutMs, queryMs: queryTimeoutMs }

/**
 * The deadlines of a query on a replica. A query that misses a deadline is repeated on the primary, so these deadlines
 * leave most of the request's deadline for the second attempt.
 */
export const replicaDeadlines: Deadlines = { connectMs: 500, queryMs: 1000 }

export const makeConnectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** No connection was established within `connectMs`. */
export const connectTimeoutError = makeConnectionError("no connection was made in time")

/** No connection became free within `connectMs`, because all were busy. This is not an outage. */
export const poolExhaustedError = makeConnectionError("the pool's connections are all busy")

/** PostgreSQL did not respond within `queryMs`. */
export const queryTimeoutError = makeConnectionError("no response in time")
