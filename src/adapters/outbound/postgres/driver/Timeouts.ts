import * as Duration from "effect/Duration"
import { ConnectionError, SqlError } from "effect/sql/SqlError"

/** How long a query may wait for a permit of its workspace and for a connection. */
export const connectTimeout = "1 second"

export const connectTimeoutMs = Duration.toMillis(connectTimeout)

/** How long PostgreSQL may work on the statement of a query, in milliseconds. */
export const statementTimeoutMs = 3000

export const makeConnectionError = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) })

/** No connection was established within `connectTimeout`. */
export const connectTimeoutError = makeConnectionError("no connection was made in time")

/** No connection became free within `connectTimeout`, because all were busy. This is not an outage. */
export const poolExhaustedError = makeConnectionError("the pool's connections are all busy")
