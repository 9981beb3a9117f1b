import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import { metricRegistry } from "../../../../application/observability/Instrumentation.ts"

/** A statement first waits for a connection, then runs. */
export type StatementPhase = "waiting" | "running"

/** Moves a statement to a phase; `undefined` means that the statement is done. */
export type SetPhase = (phase: StatementPhase | undefined) => void

export interface PoolGauges {
  readonly running: () => number
  /** Adds a statement. The statement is in no phase until the returned function is called. */
  readonly addStatement: () => SetPhase
}

const makeGauge = (pool: string, name: string, description: string) => {
  const gauge = Metric.gauge(name, { description, attributes: { pool } })
  return (change: number): void => gauge.modifyUnsafe(change, metricRegistry)
}

/**
 * Registers the gauges of a pool that runs at most `limit` statements at the same time. Removes the pool from the
 * gauges when the scope closes.
 */
export const makePoolGauges = (
  pool: string,
  limit: number
): Effect.Effect<PoolGauges, never, Scope.Scope> => {
  const changeMax = makeGauge(
    pool,
    "prompt_retrieval_postgres_statements_max",
    "Maximum number of statements that the pool's connections run at the same time"
  )
  const changeGauge = {
    waiting: makeGauge(
      pool,
      "prompt_retrieval_postgres_statements_waiting",
      "Statements that wait for a connection of the pool"
    ),
    running: makeGauge(
      pool,
      "prompt_retrieval_postgres_statements_running",
      "Statements in flight on the pool's connections"
    )
  }
  const counts = { waiting: 0, running: 0 }
  const changeCount = (phase: StatementPhase, change: 1 | -1): void => {
    counts[phase] += change
    changeGauge[phase](change)
  }
  const gauges: PoolGauges = {
    running: () => counts.running,
    addStatement: () => {
      let phase: StatementPhase | undefined
      return (next) => {
        if (phase !== undefined) changeCount(phase, -1)
        if (next !== undefined) changeCount(next, 1)
        phase = next
      }
    }
  }
  return Effect.acquireRelease(
    Effect.sync(() => {
      changeMax(limit)
      return gauges
    }),
    () => Effect.sync(() => changeMax(-limit))
  )
}
