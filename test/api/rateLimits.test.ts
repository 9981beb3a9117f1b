import { expect, it } from "vitest"
import { makeTenant, sample } from "../support/archives.ts"
import { call, callStateless } from "../support/clients/mcp.ts"
import { exchange, getHeader, type HttpResponse, rawRequest } from "../support/clients/rawHttp.ts"
import { read, sendWait } from "../support/clients/read.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { readMetric } from "../support/services/metrics.ts"
import { type ObservedService, startObservedService } from "../support/services/startObservedService.ts"
import { expectError } from "./expectations.ts"
import { expectDocumented } from "./openapi/document.ts"
import { authorize, endpointTargets } from "./startApi.ts"

const home = sample()
const free = makeTenant({ workspace: { tier: "free" } })
const targets = endpointTargets(home.archive.prompts[0]!.id)

const denials = "prompt_retrieval_rate_limit_denials_total"

const { env, sql } = makeTestDatabase([home.archive, free.archive])

const currentMinute = () => Math.floor(Date.now() / 60_000)

/**
 * Runs a test on a new service, which has not counted any requests yet. The service counts requests per clock minute,
 * so a test that fails after a new minute has started runs a second time.
 */
const runWithinMinute = async (test: (service: ObservedService) => Promise<void>): Promise<void> => {
  const attempt = async () => {
    const service = await startObservedService({
      ...env,
      MCP: "on",
      RATE_LIMIT_PER_KEY: "3",
      RATE_LIMIT_PER_PROCESS: "5"
    })
    const minute = currentMinute()
    try {
      await test(service)
    } catch (error) {
      if (currentMinute() === minute) throw error
      return false
    } finally {
      await service.stop()
    }
    return true
  }
  if (!(await attempt())) expect(await attempt()).toBe(true)
}

/**
 * Expects a 429 response that states this rate limit. All headers of the 429 must state the same time until the limit
 * resets.
 */
const expectRateLimited = (response: HttpResponse, scope: "key" | "process", limit: number): void => {
  const seconds = Number(getHeader(response, "retry-after"))
  expect(seconds).toBeGreaterThanOrEqual(1)
  expect(seconds).toBeLessThanOrEqual(60)
  expectError(response, [
    429,
    "RATE_LIMITED",
    "Rate limit exceeded",
    {
      "retry-after": String(seconds),
      "ratelimit-policy": `"${scope}";q=${limit};w=60`,
      ratelimit: `"${scope}";r=0;t=${seconds}`
    }
  ])
}

it("a 429 response and a metric both state which rate limit was exceeded, and a request with a rejected key counts against no limit", async () => {
  await runWithinMinute(async ({ port, metricsPort }) => {
    const send = (token: string, target: string = targets.list, method = "GET") =>
      exchange(port, rawRequest(target, [authorize(token)], method))
    const rejected = [free.key.plaintext, home.keys.revoked.plaintext, `key_live_${"0".repeat(64)}`, "x"]
    for (const token of rejected)
      for (let i = 0; i < 4; i++) expect([401, 403]).toContain((await send(token)).status)

    const first = home.keys.active.plaintext
    expect((await send(first)).status).toBe(200)
    expect((await send(first, "/api/v1/prompts?page=0")).status).toBe(400)
    expect((await send(first, "/api/v1/prompts/x", "HEAD")).status).toBe(404)
    expectRateLimited(await send(first), "key", 3)

    const second = home.keys.second.plaintext
    expect((await send(second)).status).toBe(200)
    expect((await send(second)).status).toBe(200)
    for (const target of Object.values(targets)) {
      const response = await send(second, target)
      expectRateLimited(response, "process", 5)
      expectDocumented(target, response)
    }
    expect(await readMetric(metricsPort, `${denials}{bucket="key"}`)).toBe(1)
    expect(await readMetric(metricsPort, `${denials}{bucket="process"}`)).toBe(Object.keys(targets).length)

    expect((await exchange(port, rawRequest("/healthz"))).status).toBe(200)
  })
})

it("a request that waits for a change counts once against the rate limit, and an MCP call over the limit gets 429 with the code RATE_LIMITED", () =>
  runWithinMinute(async (service) => {
    const key = home.keys.active.plaintext
    const request = [service.url + targets.list, key] as const
    const { response } = sendWait(...request, (await read(...request)).headers.etag)
    await expect.poll(() => readMetric(service.metricsPort, "prompt_retrieval_http_requests_held")).toBe(1)
    await sql("update prompts set title = title || '!'")
    expect((await response).status).toBe(200)
    expect((await callStateless(service, key, "prompts/list")).status).toBe(200)
    const { status, headers, body } = await call(service, key, "prompts/list")
    const retryAfter = Number(headers.get("retry-after"))
    expect(retryAfter).toBeGreaterThan(0)
    const error = { code: 429, message: "Rate limit exceeded", data: { code: "RATE_LIMITED", retryAfter } }
    expect([status, body]).toEqual([429, { jsonrpc: "2.0", error }])
    expect((await read(...request)).status).toBe(429)
  }))
