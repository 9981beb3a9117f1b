/** Returns the value of a series of a service's metrics, or 0 if the service has not written it yet. */
export const readMetric = async (port: number | string, series: string): Promise<number> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const line = text.split("\n").find((line) => line.startsWith(`${series} `))
  return Number(line?.slice(series.length) ?? 0)
}

/** The series of the cached responses that a service has sent. */
export const responseHits = 'prompt_retrieval_cache_lookups_total{cache="responses",result="hit"}'
