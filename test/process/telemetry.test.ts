import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import { beforeAll, expect, it } from "vitest"
import * as archives from "../support/archives.ts"
import { type Collector, collector, silentCollector, toAttributes } from "../support/services/collector.ts"
import { type LogLine, parseLogLines } from "../support/logLines.ts"
import { freePort } from "../support/ports.ts"
import { proxyToUrl } from "../support/postgres.ts"
import { exchange, exchangeAll, rawRequest } from "../support/clients/rawHttp.ts"
import { read, sendGet } from "../support/clients/read.ts"
import { runService, type Service, startService } from "../support/service.ts"
import { readMetric, responseHits } from "../support/services/metrics.ts"
import { makeAcquire, makeTestDatabase } from "../support/testDatabase.ts"

const listFailedIds = (output: string): ReadonlyArray<unknown> =>
  parseLogLines(output)
    .filter(({ msg }) => msg === "Request failed")
    .map(({ request_id }) => request_id)

const parseRequestLines = (output: string): ReadonlyArray<LogLine> =>
  parseLogLines(output).filter(({ msg }) => msg === "request")

const readMetrics = async (port: number): Promise<string> => {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  return response.text()
}

/** Returns the values of a metric. The keys are the labels, as the text between the braces. */
const parseSeries = (text: string, name: string): Record<string, number> =>
  Object.fromEntries(
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`))
      .map((line) => /\{(.*)\} (\S+)$/.exec(line)!)
      .map(([, labels, value]) => [labels, Number(value)])
  )

const { archive, keys } = archives.sample()
const id = archive.prompts.find(({ fragments }) => fragments.length > 0)!.id
const free = archives.sample({ tier: "free" })
const disputed = archives.sample({ billing_status: "disputed" })
const otlp = { OTEL_METRIC_EXPORT_INTERVAL: "200", OTEL_BSP_SCHEDULE_DELAY: "200" }
const { env, sql } = makeTestDatabase([archive, free.archive, disputed.archive])
const acquire = makeAcquire()
let otlpCollector: Collector

const start = async (overrides: Record<string, string>) => {
  const metricsPort = await freePort()
  const settings = { ...env, METRICS_PORT: String(metricsPort), ...overrides }
  const service = await acquire(runService(() => startService(settings)))
  return { service, metricsPort }
}

beforeAll(async () => {
  otlpCollector = await acquire(collector)
})

it("each request, cached or not, has one log line, and each 500 also has a line with its cause", async () => {
  const { service } = await start({ LOG_LEVEL: "All" })
  const before = parseRequestLines(service.output()).length
  let sentCount = 0
  const send = async (request: string) => {
    sentCount++
    await exchange(service.port, request)
  }
  const sendWithKey = (path: string, { plaintext }: archives.Key = keys.active, method = "GET") =>
    send(rawRequest(path, [`Authorization: Bearer ${plaintext}`], method))
  const prompt = `/api/v1/prompts/${id}`
  const reads = ["/api/v1/prompts", prompt, `${prompt}/resolved`]
  for (const path of [...reads, `${prompt}/versions`, `${prompt}/versions/1`, "/healthz", "/openapi.json"])
    for (const method of ["GET", "HEAD", "DELETE"]) await sendWithKey(path, keys.active, method)
  for (const key of [free.keys.active, disputed.keys.active, keys.revoked])
    await sendWithKey("/api/v1/prompts", key)
  await sendWithKey("/api/v1/prompts?page=0")
  await send(rawRequest("/nothing"))

  // The service rejects these requests before they reach the application.
  for (const request of [
    "GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\nConnection: close\r\n\r\n",
    "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
    "NO METHOD / HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
    rawRequest("/api/v1/prompts", [`X-Large: ${"x".repeat(17_000)}`])
  ])
    await send(request)
  sentCount += 2
  expect(
    await exchangeAll(service.port, `GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n${rawRequest("/nothing")}`)
  ).toHaveLength(2)

  // The first reads get 500 because a row has an unknown type. The later reads get 500 because of an error of
  // PostgreSQL.
  await sql("alter table prompts drop constraint prompts_prompt_type_check")
  await sql("update prompts set prompt_type = 'none'")
  for (const path of reads) await sendWithKey(path)
  await sql("alter table prompts rename column title to renamed")
  for (const path of reads) await sendWithKey(path)
  await sql("alter table prompts rename column renamed to title")
  await sql("update prompts set prompt_type = 'system'")

  expect(await service.stop()).toBe(0)
  const lines = parseRequestLines(service.output()).slice(before)
  expect(lines).toHaveLength(sentCount)
  const fields = "time level msg method route status duration_ms request_id workspace_id key_id".split(" ")
  for (const line of lines) expect(Object.keys(line)).toEqual(fields)
  // These lines include the lines of responses from the cache.
  for (const line of lines.filter(({ route, status }) => status === 200 && /^\/api/.test(String(route))))
    expect(line).toMatchObject({ workspace_id: archive.workspace.id, key_id: keys.active.stored.id })
  const statuses = new Set(lines.map(({ status }) => status))
  expect([...statuses].sort()).toEqual([200, 400, 401, 402, 403, 404, 405, 417, 431, 500])
  expect(lines.filter(({ status }) => status === 500).map((line) => line.request_id)).toEqual(
    listFailedIds(service.output())
  )
})

it("/metrics counts requests by route and status, and has metrics of the process, of PostgreSQL and of the shared counter", async () => {
  const { service, metricsPort } = await start({ REDIS_URL: `redis://127.0.0.1:${await freePort()}` })
  const authorization = { authorization: `Bearer ${keys.active.plaintext}` }
  const send = async (path: string, headers: Record<string, string>, method = "GET") => {
    await (await fetch(service.url + path, { headers, method })).arrayBuffer()
  }
  const before = parseSeries(await readMetrics(metricsPort), "prompt_retrieval_http_requests_total")
  for (const path of ["", `/${id}`, `/${id}`, `/${id}/resolved`])
    await send(`/api/v1/prompts${path}`, authorization)
  await send("/api/v1/prompts", {})
  await send("/api/v1/prompts", authorization, "HEAD")
  await send("/api/v1/prompts", authorization, "POST")
  await send("/metrics", authorization)
  await exchange(service.port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
  await exchange(service.port, "no HTTP\r\n\r\n")

  const text = await readMetrics(metricsPort)
  const after = parseSeries(text, "prompt_retrieval_http_requests_total")
  const added = Object.entries(after)
    .map(([labels, count]) => [labels, count - (before[labels] ?? 0)])
    .filter(([, count]) => count !== 0)
  expect(Object.fromEntries(added)).toEqual({
    'route="/api/v1/prompts",status="200"': 2,
    'route="/api/v1/prompts",status="401"': 1,
    'route="/api/v1/prompts",status="405"': 1,
    'route="/api/v1/prompts/:id",status="200"': 2,
    'route="/api/v1/prompts/:id/resolved",status="200"': 1,
    'route="/healthz",status="400"': 1,
    'route="none",status="404"': 1,
    'route="none",status="400"': 1
  })
  expect(parseSeries(text, "prompt_retrieval_http_request_duration_seconds_count")).toMatchObject({
    'route="/api/v1/prompts"': 4,
    'route="/api/v1/prompts/:id"': 2
  })
  expect(parseSeries(text, "prompt_retrieval_postgres_statements_max")).toEqual({
    'pool="read"': 4,
    'pool="lookup"': 2
  })
  expect(text).toContain("prompt_retrieval_rate_limiter_shared_up 0\n")
  for (const name of [
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "nodejs_heap_size_used_bytes"
  ])
    expect(text).toMatch(new RegExp(`^prompt_retrieval_${name} (?!0$)`, "m"))
  expect((await fetch(`http://127.0.0.1:${metricsPort}/`)).status).toBe(404)
})

const sendTraced = async (service: Service, path: string) => {
  const [traceId, callerSpan] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")]
  const response = await fetch(service.url + path, {
    headers: {
      authorization: `Bearer ${keys.active.plaintext}`,
      traceparent: `00-${traceId}-${callerSpan}-01`
    }
  })
  expect(response.status).toBe(200)
  await response.arrayBuffer()
  return { traceId, callerSpan }
}

it("OTLP export sends metrics, and sends the spans of cached and uncached requests as parts of the caller's trace", async () => {
  const { service, metricsPort } = await start({ ...otlp, OTEL_EXPORTER_OTLP_ENDPOINT: otlpCollector.url })
  const path = `/api/v1/prompts/${id}/resolved?a=b`
  const uncached = await sendTraced(service, path)
  const readHits = () => readMetric(metricsPort, responseHits)
  let cached = await sendTraced(service, path)
  for (let n = 0; n < 100 && (await readHits()) === 0; n++) cached = await sendTraced(service, path)
  expect(await readHits()).toBe(1)
  await service.stop()

  const listSpans = ({ traceId }: typeof cached) =>
    otlpCollector
      .spans()
      .filter((span) => span.traceId === traceId)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((span) => ({ ...span, attributes: toAttributes(span) }))
  const spans = listSpans(uncached)
  const route = "/api/v1/prompts/:id/resolved"
  const server = ({ callerSpan }: typeof cached) => ({
    name: `GET ${route}`,
    parentSpanId: callerSpan,
    kind: 2,
    attributes: {
      "http.request.method": "GET",
      "http.route": route,
      "http.response.status_code": 200
    },
    status: { code: 1 }
  })
  const child = (name: string, parent: string) => ({
    name,
    parentSpanId: spans.find((span) => span.name === parent)!.spanId,
    kind: 1,
    attributes: {},
    status: { code: 1 }
  })
  expect(spans).toMatchObject([
    child("Admission.admit", `GET ${route}`),
    server(uncached),
    child("KeyStore.find", "Admission.admit"),
    child("PromptRepo.getSource", "Prompts.getResolvedVersion"),
    child("Prompts.getResolvedVersion", `GET ${route}`)
  ])
  expect(listSpans(cached)).toMatchObject([server(cached)])
  const routes = otlpCollector.sums("prompt_retrieval_http_requests_total").map(toAttributes)
  expect(routes).toContainEqual({ route, status: "200" })
})

it("while the OTLP collector does not respond, one export is in flight, at most 8 exports wait, and further spans are dropped", async () => {
  const silent = await acquire(silentCollector)
  const { service } = await start({
    ...otlp,
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "5",
    OTEL_EXPORTER_OTLP_ENDPOINT: silent.url
  })
  for (let n = 0; n < 100; n++) await sendTraced(service, `/api/v1/prompts/${id}?n=${n}`)
  expect(silent.counts()).toEqual({ received: 1, open: 1, mostOpen: 1 })
  silent.respond()
  await expect.poll(() => silent.counts().open).toBe(0)
  expect(await service.stop()).toBe(0)
  const { received, mostOpen } = silent.counts()
  expect(mostOpen).toBe(1)
  // Without a limit, there would be more than 20 exports of traces. The last exports are sent after the response.
  expect(received).toBeGreaterThan(8)
  expect(received).toBeLessThan(16)
})

it("an export to an OTLP collector that does not respond ends after OTEL_EXPORTER_OTLP_TIMEOUT", async () => {
  const silent = await acquire(silentCollector)
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: silent.url, OTEL_EXPORTER_OTLP_TIMEOUT: "100" }
  const { service } = await start({ ...otlp, ...endpoint })
  await sendTraced(service, `/api/v1/prompts/${id}`)
  await expect.poll(() => silent.counts().received).toBeGreaterThan(2)
  expect(silent.counts().mostOpen).toBe(1)
})

it("METRICS_HOST selects the address of the metrics server independently of HOST", async () => {
  const { metricsPort } = await start({ HOST: "0.0.0.0", METRICS_HOST: "127.0.0.2" })
  expect((await fetch(`http://127.0.0.2:${metricsPort}/metrics`)).status).toBe(200)
  await expect(fetch(`http://127.0.0.1:${metricsPort}/metrics`)).rejects.toThrow("fetch failed")
})

it("while PostgreSQL does not respond, running statements are counted, and a request is logged after its client disconnects", async () => {
  const proxy = await acquire(proxyToUrl(env.DATABASE_URL))
  const { service, metricsPort } = await start({ DATABASE_URL: proxy.url })
  const url = `${service.url}/api/v1/prompts`
  expect((await read(url, keys.active.plaintext)).status).toBe(200)
  const countRunning = async () =>
    parseSeries(await readMetrics(metricsPort), "prompt_retrieval_postgres_statements_running")
  expect(await countRunning()).toEqual({ 'pool="read"': 0, 'pool="lookup"': 0 })
  const lines = parseRequestLines(service.output()).length

  // This key is not cached, so the service looks it up in PostgreSQL, which does not respond.
  await Effect.runPromise(proxy.freeze)
  const sent = sendGet(url, keys.second.plaintext)
  await expect.poll(countRunning).toEqual({ 'pool="read"': 0, 'pool="lookup"': 1 })
  sent.close()
  await Effect.runPromise(proxy.thaw)
  await expect.poll(() => parseRequestLines(service.output()).length).toBe(lines + 1)
  expect(parseRequestLines(service.output()).at(-1)).toMatchObject({
    route: "/api/v1/prompts",
    key_id: keys.second.stored.id
  })
  await expect.poll(countRunning).toEqual({ 'pool="read"': 0, 'pool="lookup"': 0 })
})
