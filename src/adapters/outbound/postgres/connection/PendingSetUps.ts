import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { SqlError } from "effect/sql/SqlError"
import { makeConnectionError } from "../driver/Timeouts.ts"

const notSetUpError = makeConnectionError("the session was not set up")

/** Lets statements wait until the session of their connection is set up. */
export class PendingSetUps {
  readonly #outcomes = new WeakMap<PgConnection, Deferred.Deferred<void, SqlError>>()

  /** Runs the set-up of a connection. If the set-up is interrupted, the connection never counts as set up. */
  run<A>(connection: PgConnection, setUp: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> {
    return Effect.suspend(() => {
      const outcome = Deferred.makeUnsafe<void, SqlError>()
      this.#outcomes.set(connection, outcome)
      return Effect.onExit(setUp, (exit) =>
        Exit.isSuccess(exit) ? Deferred.succeed(outcome, undefined) : Deferred.fail(outcome, notSetUpError)
      )
    })
  }

  /** Succeeds once a connection is set up. Fails if its set-up has failed. */
  await(connection: PgConnection): Effect.Effect<void, SqlError> {
    const outcome = this.#outcomes.get(connection)
    return outcome === undefined ? Effect.fail(notSetUpError) : Deferred.await(outcome)
  }
}
