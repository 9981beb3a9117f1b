import { setTimeout } from "node:timers/promises"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { freshCluster, makeStandby } from "../database/cluster.ts"

/** A primary and its standby. Each `Stage` (two instances of the service) has its own database on these servers. */
export interface Servers {
  readonly primaryUrl: string
  readonly standbyUrl: string
  /** Makes the standby apply commits this long after the primary, in milliseconds. */
  readonly delayStandby: (delayMs: number) => Promise<void>
  /** Suspends the standby for some milliseconds. */
  readonly freezeStandby: (durationMs: number) => Promise<void>
  /** Stops the standby and starts it again. */
  readonly restartStandby: () => Promise<void>
}

const settings = ["max_connections=300"]

/** Starts a primary and a standby. Closing the scope stops and removes them. */
export const startServers: Effect.Effect<Servers, never, Scope.Scope> = Effect.gen(function* () {
  const primary = yield* freshCluster
  yield* Effect.promise(() => primary.start(settings))
  const standby = yield* makeStandby(primary)
  yield* Effect.promise(() => standby.start(settings))
  /** The latest operation on the standby. Operations run one after another. */
  let last = Promise.resolve()
  const exclusively = (operation: () => Promise<void>): Promise<void> => {
    const result = last.then(operation)
    last = result.catch(() => {})
    return result
  }
  const runOnStandby = (...statements: ReadonlyArray<string>) =>
    Effect.runPromise(
      Effect.flatMap(PgClient.PgClient, (sql) =>
        Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
      ).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(standby.url) })))
    )
  return {
    primaryUrl: primary.url,
    standbyUrl: standby.url,
    delayStandby: (delayMs) =>
      exclusively(() =>
        runOnStandby(`alter system set recovery_min_apply_delay = '${delayMs}ms'`, "select pg_reload_conf()")
      ),
    freezeStandby: (durationMs) =>
      exclusively(async () => {
        standby.freeze()
        await setTimeout(durationMs)
        standby.thaw()
      }),
    restartStandby: () =>
      exclusively(async () => {
        await standby.stop()
        await standby.start(settings)
      })
  }
})
