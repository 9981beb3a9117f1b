import { makeResources } from "../makeResources.ts"
import { freePort } from "../network/ports.ts"
import { collector } from "./collector.ts"
import { searchForLeaks } from "./secrets.ts"
import { type Service, startService } from "./startService.ts"

export interface ObservedService extends Service {
  readonly metricsPort: string
}

/**
 * Like `startService`, but the service writes every log line, serves metrics and sends spans to a collector. `stop`
 * searches the log, the metrics and the spans for leaks.
 */
export const startObservedService = async (
  ...[env, ...options]: Parameters<typeof startService>
): Promise<ObservedService> => {
  const resources = makeResources()
  const otlp = await resources.acquire(collector)
  const metricsPort = env.METRICS_PORT ?? String(await freePort())
  const service = await startService(
    {
      ...env,
      LOG_LEVEL: "All",
      METRICS_PORT: metricsPort,
      OTEL_EXPORTER_OTLP_ENDPOINT: otlp.url,
      OTEL_BSP_SCHEDULE_DELAY: "200",
      OTEL_METRIC_EXPORT_INTERVAL: "200"
    },
    ...options
  )
  const { process } = service
  const searchMetrics = async () => {
    if (process.exitCode !== null || process.signalCode !== null) return
    searchForLeaks(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text())
  }
  return {
    ...service,
    metricsPort,
    stop: async () => {
      const search = searchMetrics()
      await search.catch(() => {})
      const code = await service.stop()
      searchForLeaks(otlp.received())
      await resources.release()
      await search
      return code
    }
  }
}
