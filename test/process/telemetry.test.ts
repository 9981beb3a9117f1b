import { randomBytes } from "node:crypto"
import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import * as archives from "../support/archives.ts"
import { exchange, exchangeAll, rawRequest } from "../support/clients/rawHttp.ts"
import { read, sendGet } from "../support/clients/read.ts"
import { uncachedPath } from "../support/clients/requests.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { freePort } from "../support/network/ports.ts"
import { proxyToUrl } from "../support/network/tcpProxy.ts"
import { collector, toAttributes } from "../support/services/collector.ts"
import { type LogLine, parseLogLines } from "../support/services/logLines.ts"
import { readMetric, responseHits } from "../support/services/metrics.ts"
import { canary } from "../support/services/secrets.ts"
import { startObservedService } from "../support/services/startObservedService.ts"
import { runService, type Service, startService } from "../support/services/startService.ts"

const parseRequestLines = (output: string): ReadonlyArray<LogLine> =>
  parseLogLines(output).filter(({ msg }) => msg === "request")

const readMetrics = async (port: number | string): Promise<string> =>
  (await fetch(`http://127.0.0.1:${port}/metrics`)).text()

/** Returns the values of a metric by its labels. Each key is the text between the braces. */
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
const { env, sql, acquire } = makeTestDatabase([archive, free.archive, disputed.archive])

const start = async (overrides: Record<string, string>) => {
  const metricsPort = await freePort()
  const settings = { ...env, METRICS_PORT: String(metricsPort), ...overrides }
  const service = await acquire(runService(() => startService(settings)))
  return { service, metricsPort }
}

// Each request has the canary in every part that the caller chooses. `startObservedService` searches the log, the
// metrics and the spans for the canary.
it("the service counts each request once, logs one line without any text of the caller, and logs the cause of each 500", async () => {
  const service = await acquire(runService(() => startObservedService(env)))
  let sentCount = parseRequestLines(service.output()).length
  const send = async (request: string) => {
    sentCount++
    await exchange(service.port, request)
  }
  const headers = [`Cookie: ${canary}`, `X-${canary}: ${canary}`, `X-Request-Id: ${canary}!`]
  const sendWithKey = (path: string, { plaintext }: archives.Key = keys.active, method = "GET") =>
    send(
      rawRequest(`${path}?${canary}=${canary}`, [...headers, `Authorization: Bearer ${plaintext}`], method)
    )
  const prompt = `/api/v1/prompts/${id}`
  const reads = ["/api/v1/prompts", prompt, `${prompt}/resolved`]
  for (const path of [...reads, `${prompt}/versions`, `${prompt}/versions/1`, "/healthz", "/openapi.json"])
    for (const method of ["GET", "HEAD", "DELETE"]) await sendWithKey(path, keys.active, method)
  for (const key of [free.keys.active, disputed.keys.active, keys.revoked])
    await sendWithKey("/api/v1/prompts", key)
  for (const path of [`${prompt}/${canary}`, `/api/v1/prompts/${canary}`, `/${canary}`, "/metrics"])
    await sendWithKey(path)
  await send(rawRequest(`/api/v1/prompts?page=${canary}`, [`Authorization: Bearer ${keys.active.plaintext}`]))
  await send(rawRequest("/api/v1/prompts", [`Authorization: Bearer ${canary}`]))

  // The service rejects these requests before they reach the application.
  for (const request of [
    `GET /${canary} HTTP/1.1\r\nConnection: close\r\n\r\n`,
    "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
    `GET /${canary} HTTP/1.1\r\nHost: a\r\nExpect: ${canary}\r\nConnection: close\r\n\r\n`,
    `CONNECT ${canary}:443 HTTP/1.1\r\nHost: a\r\n\r\n`,
    `${canary} /${canary} HTTP/1.1\r\n\r\n`,
    `GET /${canary} HTTP/1.1\r\nHost: a\r\n${canary} header\r\n\r\n`,
    rawRequest("/api/v1/prompts", [`X-Large: ${canary.repeat(3_000)}`])
  ])
    await send(request)
  sentCount += 2
  expect(
    await exchangeAll(service.port, `GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n${rawRequest("/nothing")}`)
  ).toHaveLength(2)

  // No cache has the responses to these reads. The first reads get 500 because a row has an unknown type, and the later
  // reads because of an error of PostgreSQL.
  await sql("alter table prompts drop constraint prompts_prompt_type_check")
  await sql("update prompts set prompt_type = 'none'")
  for (const path of reads) await sendWithKey(uncachedPath(path))
  await sql("alter table prompts rename column title to renamed")
  for (const path of reads) await sendWithKey(uncachedPath(path))
  await sql("alter table prompts rename column renamed to title")
  await sql("update prompts set prompt_type = 'system'")

  await expect.poll(() => parseRequestLines(service.output())).toHaveLength(sentCount)
  const metrics = await readMetrics(service.metricsPort)
  expect(await service.stop()).toBe(0)
  const lines = parseRequestLines(service.output())
  const fields = "time level msg method route status duration_ms request_id workspace_id key_id".split(" ")
  for (const line of lines) expect(Object.keys(line)).toEqual(fields)
  // These lines include the lines of responses from the cache.
  for (const line of lines.filter(({ route, status }) => status === 200 && /^\/api/.test(String(route))))
    expect(line).toMatchObject({ workspace_id: archive.workspace.id, key_id: keys.active.stored.id })
  const statuses = new Set(lines.flatMap(({ route, status }) => (route === "/readyz" ? [] : [status])))
  expect([...statuses].sort()).toEqual([200, 400, 401, 402, 403, 404, 405, 417, 431, 500])
  const probes = lines.filter(({ level }) => level === "debug").map(({ route }) => route)
  expect(new Set(probes)).toEqual(new Set(["/healthz", "/readyz"]))
  const failed = parseLogLines(service.output()).filter(({ msg }) => msg === "Request failed")
  expect(lines.filter(({ status }) => status === 500).map((line) => line.request_id)).toEqual(
    failed.map(({ request_id }) => request_id)
  )

  const countLines = (getLabels: (line: LogLine) => string) =>
    Object.fromEntries([...Map.groupBy(lines, getLabels)].map(([labels, { length }]) => [labels, length]))
  const getRoute = ({ route }: LogLine) => `route="${route ?? "none"}"`
  expect(parseSeries(metrics, "prompt_retrieval_http_requests_total")).toEqual(
    countLines((line) => `${getRoute(line)},status="${line.status}"`)
  )
  expect(parseSeries(metrics, "prompt_retrieval_http_request_duration_seconds_count")).toEqual(
    countLines(getRoute)
  )
  expect(new Set(lines.map(({ route }) => route))).toEqual(
    new Set([
      ...[null, "/healthz", "/readyz", "/openapi.json", "/api/v1/prompts", "/api/v1/prompts/:id"],
      ...["resolved", "versions", "versions/:version"].map((end) => `/api/v1/prompts/:id/${end}`)
    ])
  )
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
  const otlpCollector = await acquire(collector)
  const { service, metricsPort } = await start({ ...otlp, OTEL_EXPORTER_OTLP_ENDPOINT: otlpCollector.url })
  const path = `/api/v1/prompts/${id}/resolved?a=b`
  const uncached = await sendTraced(service, path)
  const readHits = () => readMetric(metricsPort, responseHits)
  let cached = await sendTraced(service, path)
  for (let n = 0; n < 100 && (await readHits()) === 0; n++) cached = await sendTraced(service, path)
  expect(await readHits()).toBe(1)
  await service.stop()

  const route = "/api/v1/prompts/:id/resolved"
  const listSpans = ({ traceId, callerSpan }: typeof cached) => {
    const spans = otlpCollector.spans().filter((span) => span.traceId === traceId)
    const names = new Map([
      [callerSpan, "the caller"],
      ...spans.map(({ spanId, name }) => [spanId, name] as const)
    ])
    return spans
      .map(({ name, parentSpanId, kind, status, ...span }) => [
        ...[name, names.get(parentSpanId!), kind, status.code],
        toAttributes(span)
      ])
      .sort()
  }
  const attributes = {
    "http.request.method": "GET",
    "http.route": route,
    "http.response.status_code": 200
  }
  const server = [`GET ${route}`, "the caller", 2, 1, attributes]
  expect(listSpans(uncached)).toEqual([
    ["Admission.admit", `GET ${route}`, 1, 1, {}],
    server,
    ["KeyStore.find", "Admission.admit", 1, 1, {}],
    ["PromptRepo.getSource", "Prompts.getResolvedVersion", 1, 1, {}],
    ["Prompts.getResolvedVersion", `GET ${route}`, 1, 1, {}]
  ])
  expect(listSpans(cached)).toEqual([server])
  const routes = otlpCollector.sums("prompt_retrieval_http_requests_total").map(toAttributes)
  expect(routes).toContainEqual({ route, status: "200" })
})

it("if an OTLP collector does not respond, the service has one export in flight and at most 8 waiting exports, and drops further spans", async () => {
  const silent = await acquire(collector)
  silent.setSilent(true)
  const { service } = await start({
    ...otlp,
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "5",
    OTEL_EXPORTER_OTLP_ENDPOINT: silent.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: "2000"
  })
  for (let n = 0; n < 100; n++) await sendTraced(service, `/api/v1/prompts/${id}?n=${n}`)
  await expect.poll(() => silent.counts().received).toBeGreaterThan(1)
  silent.setSilent(false)
  await expect.poll(() => silent.counts().open).toBe(0)
  expect(await service.stop()).toBe(0)
  const { received, mostOpen } = silent.counts()
  expect(mostOpen).toBe(1)
  // Without a limit, there would be more than 80 exports of traces. The service sends the last exports after the
  // collector has responded.
  expect(received).toBeGreaterThan(8)
  expect(received).toBeLessThan(50)
})

it("METRICS_HOST selects the address of the metrics server, whose only path is /metrics, independently of HOST", async () => {
  const { metricsPort } = await start({ HOST: "0.0.0.0", METRICS_HOST: "127.0.0.2" })
  const { headers } = await fetch(`http://127.0.0.2:${metricsPort}/metrics`)
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
  expect((await fetch(`http://127.0.0.2:${metricsPort}/`)).status).toBe(404)
  await expect(fetch(`http://127.0.0.1:${metricsPort}/metrics`)).rejects.toThrow("fetch failed")
})

it("while PostgreSQL does not respond, a metric counts running statements, and the log has the request of a client that disconnected", async () => {
  const proxy = await acquire(proxyToUrl(env.DATABASE_URL))
  const { service, metricsPort } = await start({ DATABASE_URL: proxy.url })
  const url = `${service.url}/api/v1/prompts`
  expect((await read(url, keys.active.plaintext)).status).toBe(200)
  const countRunning = async () =>
    parseSeries(await readMetrics(metricsPort), "prompt_retrieval_postgres_statements_running")
  expect(await countRunning()).toEqual({ 'pool="read"': 0, 'pool="lookup"': 0 })
  // At the default level, the log contains no requests of probes.
  await expect.poll(() => parseRequestLines(service.output())).toHaveLength(1)

  // This key is not cached, so the service looks up the key in PostgreSQL, which does not respond.
  await Effect.runPromise(proxy.freeze)
  const sent = sendGet(url, keys.second.plaintext)
  await expect.poll(countRunning).toEqual({ 'pool="read"': 0, 'pool="lookup"': 1 })
  sent.close()
  await Effect.runPromise(proxy.thaw)
  await expect.poll(() => parseRequestLines(service.output())).toHaveLength(2)
  expect(parseRequestLines(service.output()).at(-1)).toMatchObject({
    route: "/api/v1/prompts",
    key_id: keys.second.stored.id
  })
  await expect.poll(countRunning).toEqual({ 'pool="read"': 0, 'pool="lookup"': 0 })
})
