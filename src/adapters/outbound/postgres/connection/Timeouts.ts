import { ConnectionError, SqlError } from "effect/sql/SqlError"

/** How long a query may wait for a connection. */
export const connectTimeout = "1 second"

/** How long a query that has a connection may take. */
export const queryTimeout = "3 seconds"

/** How long PostgreSQL may work on the statement of a query, in milliseconds. */
export const statementTimeoutMs = 3000

const makeConnectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** No connection was established within `connectTimeout`. */
export const connectTimeoutError = makeConnectionError("no connection was made in time")

/** All connections were busy for `connectTimeout`; not an outage. */
export const poolExhaustedError = makeConnectionError("the pool's connections are all busy")

/** PostgreSQL did not respond within `queryTimeout`. */
export const queryTimeoutError = makeConnectionError("no response in time")
