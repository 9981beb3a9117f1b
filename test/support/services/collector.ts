import { createServer, type ServerResponse } from "node:http"
import { text } from "node:stream/consumers"
import * as Effect from "effect/Effect"
import { listenOnFreePort } from "../network/ports.ts"

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

/** Converts OTLP attributes to a plain object. */
export const toAttributes = ({ attributes }: { readonly attributes: ReadonlyArray<Attribute> }) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/**
 * Starts a stand-in for an OpenTelemetry collector, which stores the OTLP/JSON that it receives over HTTP. Closing the
 * scope stops the collector.
 */
export const collector = Effect.gen(function* () {
  const bodies: Array<{ readonly path: string | undefined; readonly body: string }> = []
  const open = new Set<ServerResponse>()
  let [mostOpen, isSilent] = [0, false]
  const respond = (response: ServerResponse) =>
    response.setHeader("content-type", "application/json").end("{}")
  const server = createServer(async (request, response) => {
    open.add(response)
    mostOpen = Math.max(mostOpen, open.size)
    response.on("close", () => open.delete(response))
    bodies.push({ path: request.url, body: await text(request) })
    if (!isSilent) respond(response)
  })
  const port = yield* listenOnFreePort(server)
  const at = (path: string) =>
    bodies.filter((received) => received.path === path).map(({ body }) => JSON.parse(body))
  return {
    url: `http://127.0.0.1:${port}`,
    /** A silent collector does not respond. After the silence, the collector responds to all open requests. */
    setSilent: (value: boolean) => {
      isSilent = value
      if (!isSilent) open.forEach(respond)
    },
    /** Returns the number of received requests, the number of open requests, and the highest number of open requests. */
    counts: () => ({ received: bodies.length, open: open.size, mostOpen }),
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
