import { formatUnsafe } from "effect/observability/PrometheusMetrics"
import { metricRegistry } from "../../../src/application/observability/Instrumentation.ts"

const findValue = (text: string, series: string): number => {
  const line = text.split("\n").find((line) => line.startsWith(`${series} `))
  return Number(line?.slice(series.length) ?? 0)
}

/** Returns the value of a series of a service's metrics, or 0 if the service has not written it yet. */
export const readMetric = async (port: number | string, series: string): Promise<number> =>
  findValue(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), series)

/** Returns the value of a series of this process's metrics, or 0 if the process has not written it yet. */
export const readOwnMetric = (series: string): number => findValue(formatUnsafe(metricRegistry), series)

/**
 * Records the current values of series of this process. The returned function returns how much each value has increased
 * since then.
 */
export const watchOwnMetrics = (...series: ReadonlyArray<string>) => {
  const before = series.map(readOwnMetric)
  return () => series.map((each, index) => readOwnMetric(each) - before[index]!)
}

/** The series that counts the cached responses that a service has sent. */
export const responseHits = 'prompt_retrieval_cache_lookups_total{cache="responses",result="hit"}'
