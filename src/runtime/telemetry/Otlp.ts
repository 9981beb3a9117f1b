import * as ConfigProvider from "effect/ConfigProvider"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"

/** What OpenTelemetry's own variables say goes before this. */
const defaults = {
  OTEL_SERVICE_NAME: "prompt-retrieval",
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp"
}

/**
 * Sends spans and metrics where `OTEL_EXPORTER_OTLP_ENDPOINT` says, as JSON over HTTP, and what is left when it ends. A
 * collector that is away costs nothing but what was to go there. OpenTelemetry's further variables hold, such as
 * `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME`.
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
