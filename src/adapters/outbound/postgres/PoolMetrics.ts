import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"

/** The process-wide metric registry, which an empty context falls back to. */
const registry = Context.empty()

/** The gauges of one connection pool; each call adds to one. */
export interface PoolUse {
  /** Statements that wait for a connection. */
  readonly waiting: (change: 1 | -1) => void
  /** Statements in flight. */
  readonly running: (change: 1 | -1) => void
}

/** Registers the gauges of a pool that runs at most `limit` statements at once, until the scope closes. */
export const measurePool = (pool: string, limit: number): Effect.Effect<PoolUse, never, Scope.Scope> => {
  const makeGauge = (name: string, description: string) => {
    const gauge = Metric.gauge(name, { description, attributes: { pool } })
    return (change: number): void => gauge.modifyUnsafe(change, registry)
  }
  const max = makeGauge("postgres_statements_max", "Statements that the pool's connections run at once")
  const use: PoolUse = {
    waiting: makeGauge("postgres_statements_waiting", "Statements that wait for a connection of the pool"),
    running: makeGauge("postgres_statements_running", "Statements in flight on the pool's connections")
  }
  return Effect.acquireRelease(
    Effect.sync(() => {
      max(limit)
      return use
    }),
    () => Effect.sync(() => max(-limit))
  )
}
