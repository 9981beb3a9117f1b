import * as ConfigProvider from "effect/ConfigProvider"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"

/** The defaults of some of OpenTelemetry's environment variables. */
const defaults = {
  OTEL_SERVICE_NAME: "prompt-retrieval",
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp"
}

/**
 * Exports spans and metrics to the collector at `OTEL_EXPORTER_OTLP_ENDPOINT`, as JSON over HTTP, and flushes them when
 * the layer closes. If the collector is unreachable, spans and metrics are dropped. Further environment variables of
 * OpenTelemetry apply, such as `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME`.
 */
export const layer = Layer.merge(OtlpTracer.layerFromConfig(), OtlpMetrics.layerFromConfig()).pipe(
  Layer.provide([
    OtlpSerialization.layerJson,
    FetchHttpClient.layer,
    ConfigProvider.layer(
      ConfigProvider.fromEnv({ env: { ...defaults, ...process.env } as Record<string, string> })
    )
  ])
)
