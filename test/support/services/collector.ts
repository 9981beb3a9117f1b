import { createServer, type ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import * as Effect from "effect/Effect"
import { listenOnFreePort } from "../ports.ts"

interface Attribute {
  readonly key: string
  readonly value: { readonly [type: string]: string | number | boolean }
}

/** A span in OTLP's JSON encoding. */
interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly attributes: ReadonlyArray<Attribute>
  readonly status: { readonly code: number; readonly message?: string }
}

/** One series of a counter in OTLP's JSON encoding. */
interface ReceivedSum {
  readonly asDouble: number
  readonly attributes: ReadonlyArray<Attribute>
}

/** A stand-in for an OpenTelemetry collector that stores the OTLP/JSON it receives over HTTP. */
export type Collector = Effect.Success<typeof collector>

/** Converts OTLP attributes to a plain object. */
export const toAttributes = ({ attributes }: { readonly attributes: ReadonlyArray<Attribute> }) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** Starts a collector on a free port. Closing the scope stops the collector. */
export const collector = Effect.gen(function* () {
  const bodies: Array<{ readonly path: string | undefined; readonly body: string }> = []
  const server = createServer(async (request, response) => {
    bodies.push({ path: request.url, body: await text(request) })
    response.setHeader("content-type", "application/json").end("{}")
  })
  const port = yield* listenOnFreePort(server)
  const at = (path: string) =>
    bodies.filter((received) => received.path === path).map(({ body }) => JSON.parse(body))
  return {
    url: `http://127.0.0.1:${port}`,
    /** Returns everything received so far, unparsed. */
    received: () => bodies.map(({ body }) => body).join("\n"),
    /** Returns every span received so far. */
    spans: (): ReadonlyArray<ReceivedSpan> =>
      at("/v1/traces").flatMap(({ resourceSpans }) =>
        resourceSpans.flatMap(({ scopeSpans }: { scopeSpans: ReadonlyArray<{ spans: unknown }> }) =>
          scopeSpans.flatMap(({ spans }) => spans)
        )
      ),
    /** Returns the latest value of each series of a counter. */
    sums: (name: string): ReadonlyArray<ReceivedSum> =>
      at("/v1/metrics")
        .at(-1)
        ?.resourceMetrics[0].scopeMetrics[0].metrics.find((metric: { name: string }) => metric.name === name)
        ?.sum.dataPoints ?? []
  }
})

/** A collector that does not respond until `respond` is called. Closing the scope stops the collector. */
export const silentCollector = Effect.gen(function* () {
  const open = new Set<ServerResponse>()
  let [received, mostOpen, isSilent] = [0, 0, true]
  const server = createServer((_request, response) => {
    received++
    if (!isSilent) {
      response.end()
      return
    }
    open.add(response)
    mostOpen = Math.max(mostOpen, open.size)
    response.on("close", () => open.delete(response))
  })
  const port = yield* listenOnFreePort(server)
  return {
    url: `http://127.0.0.1:${port}`,
    /** Returns how many requests the collector has received, how many are open, and the most that were open together. */
    counts: () => ({ received, open: open.size, mostOpen }),
    /** Responds to all open requests and to each later request. */
    respond: () => {
      isSilent = false
      for (const response of open) response.end()
    }
  }
})
