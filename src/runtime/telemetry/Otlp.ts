import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as OtlpMetrics from "effect/observability/OtlpMetrics"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import * as Semaphore from "effect/Semaphore"
import { InvalidConfig } from "../config/Config.ts"

/** This program's defaults for unset environment variables of OpenTelemetry. */
const defaults = {
  OTEL_SERVICE_NAME: "prompt-retrieval",
  OTEL_TRACES_EXPORTER: "otlp",
  OTEL_METRICS_EXPORTER: "otlp"
}

/** OpenTelemetry's default of `OTEL_EXPORTER_OTLP_TIMEOUT`, in milliseconds. */
const defaultTimeoutMs = 10_000

/** The maximum number of in-flight exports. The client sends one of these exports at a time. */
const maxExports = 8

/**
 * The client of the exporters. Effect's exporters start an export for each full batch of spans, and each export waits
 * without a time limit. So a collector that never responds would fill the memory. This client sends one export at a
 * time. The client drops an export that takes longer than `OTEL_EXPORTER_OTLP_TIMEOUT`, and an export that starts while
 * `maxExports` exports are in flight. A dropped export gets a 200 response, because an exporter stops for a minute after
 * an error.
 */
const limitedClient = Layer.effect(
  HttpClient.HttpClient,
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const duration = yield* Config.Int("OTEL_EXPORTER_OTLP_TIMEOUT").pipe(
      Config.withDefault(defaultTimeoutMs),
      Effect.filterOrFail((milliseconds) => milliseconds > 0),
      Effect.mapError(
        () => new InvalidConfig({ message: "OTEL_EXPORTER_OTLP_TIMEOUT must be an integer of at least 1" })
      )
    )
    const turn = yield* Semaphore.make(1)
    const places = yield* Semaphore.make(maxExports)
    return HttpClient.transform(client, (send, request) => {
      const dropped = Effect.sync(() => HttpClientResponse.fromWeb(request, new Response()))
      return send.pipe(
        // The time limit includes the body of the response.
        Effect.tap((response) => response.arrayBuffer),
        Effect.timeoutOrElse({ duration, orElse: () => dropped }),
        Semaphore.withPermit(turn),
        Semaphore.withPermitsIfAvailable(places, 1),
        Effect.flatMap(Option.match({ onNone: () => dropped, onSome: Effect.succeed }))
      )
    })
  })
).pipe(Layer.provide(FetchHttpClient.layer))

/**
 * Exports spans and metrics to the collector at `OTEL_EXPORTER_OTLP_ENDPOINT`, as JSON over HTTP, and flushes them when
 * the layer closes. If the collector is unreachable or too slow, spans and metrics are dropped. Further environment
 * variables of OpenTelemetry apply, such as `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_SERVICE_NAME`.
 */
export const layer = Layer.merge(OtlpTracer.layerFromConfig(), OtlpMetrics.layerFromConfig()).pipe(
  Layer.provide([OtlpSerialization.layerJson, limitedClient]),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord({ ...defaults, ...process.env })))
)
