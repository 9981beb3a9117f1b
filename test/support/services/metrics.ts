import { formatUnsafe } from "effect/observability/PrometheusMetrics"
import { metricRegistry } from "../../../src/application/observability/Instrumentation.ts"

const findValue = (text: string, series: string): number => {
  const line = text.split("\n").find((line) => line.startsWith(`${series} `))
  return Number(line?.slice(series.length) ?? 0)
}

/** Returns the value of a series in the metrics of a service, or 0 if the metrics do not contain the series. */
export const readMetric = async (port: number | string, series: string): Promise<number> =>
  findValue(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text(), series)

/** Returns the value of a series in the metrics of this process, or 0 if the metrics do not contain the series. */
export const readOwnMetric = (series: string): number => findValue(formatUnsafe(metricRegistry), series)

/** Returns a function that returns how much each series of this process has increased since the call. */
export const watchOwnMetrics = (...series: ReadonlyArray<string>) => {
  const before = series.map(readOwnMetric)
  return () => series.map((each, index) => readOwnMetric(each) - before[index]!)
}

/** The series that counts the cached responses that a service has sent. */
export const responseHits = 'prompt_retrieval_cache_lookups_total{cache="responses",result="hit"}'
