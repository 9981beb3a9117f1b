import * as Metric from "effect/Metric"
import { metricRegistry, registerCounter } from "../../../../application/support/Observability.ts"

const makeReadCounter = (target: "replica" | "primary") =>
  registerCounter(
    "prompt_retrieval_replica_reads_total",
    "Reads that replicas may run, by the server that ran them",
    { target }
  )

export const makeReadMetrics = () => ({
  countReplica: makeReadCounter("replica"),
  countPrimary: makeReadCounter("primary"),
  countFenced: registerCounter(
    "prompt_retrieval_replica_fenced_reads_total",
    "Reads that ran on the primary because the replica has not replayed a change"
  ),
  countRepeated: registerCounter(
    "prompt_retrieval_replica_repeated_reads_total",
    "Reads that were repeated on the primary because the replica failed or did not find something"
  )
})
export type ReadMetrics = ReturnType<typeof makeReadMetrics>

export const makeReplicaGauges = (replica: string) => {
  const up = Metric.gauge("prompt_retrieval_replica_up", {
    description: "1 while the replica can be used, otherwise 0; the log has the reason",
    attributes: { replica }
  })
  const lag = Metric.gauge("prompt_retrieval_replica_lag_seconds", {
    description: "Time since the primary was at the position of a replica, accurate to one second",
    attributes: { replica }
  })
  up.updateUnsafe(0, metricRegistry)
  lag.updateUnsafe(0, metricRegistry)
  return {
    setUp: (isUp: boolean): void => up.updateUnsafe(isUp ? 1 : 0, metricRegistry),
    setLag: (seconds: number): void => lag.updateUnsafe(seconds, metricRegistry)
  }
}
