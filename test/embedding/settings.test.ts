import { afterEach, expect, it, onTestFinished, vi } from "vitest"
import {
  createPromptApi,
  type HostLogFields,
  type PromptApi,
  type PromptApiOptions
} from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"

const tenant = sample()
const path = `/api/v1/prompts/${tenant.archive.prompts[0]!.id}`
const headers = { authorization: `Bearer ${tenant.keys.active.plaintext}` }

const { env } = makeTestDatabase([tenant.archive])

/** Creates an API for the sample workspace. The API is closed after the test. */
const makeApi = async (settings: Partial<PromptApiOptions>): Promise<PromptApi> => {
  const api = await createPromptApi({ databaseUrl: env.DATABASE_URL, ...settings })
  onTestFinished(api.close)
  return api
}
afterEach(() => void vi.restoreAllMocks())

const send = (api: PromptApi, target: string) =>
  api.handler(new Request(`http://host.example${target}`, { headers }))

it.each([
  [{ perKey: 1 }, '"key";q=1;w=60'],
  [{ perProcess: 1 }, '"process";q=1;w=60']
])("an API with the rateLimits %j rejects requests beyond the limit", async (rateLimits, policy) => {
  const api = await makeApi({ rateLimits })
  const readPolicy = async () => (await send(api, path)).headers.get("ratelimit-policy")
  await expect.poll(readPolicy).toBe(policy)
})

const basePath = "/prompts-service/v2"
const readServers = async (api: PromptApi) =>
  JSON.parse(await (await send(api, `${basePath}/openapi.json`)).text()).servers

it("basePath is the prefix of every path of the API, and of the URLs in its OpenAPI document and in its redirects", async () => {
  const api = await makeApi({ basePath })
  const paths = [path, `${path}/versions?per_page=1`, "/healthz", "/readyz", "/openapi.json", "/docs"]
  for (const path of paths) expect((await send(api, basePath + path)).status, path).toBe(200)
  const doubled = basePath + basePath
  const wrong = [doubled, `${basePath}x`, basePath.toUpperCase(), "/prompts-service", `/x${basePath}`]
  const unknown = [...paths, basePath, ...[...wrong, `/${basePath}`, `${basePath}/`].map((at) => at + path)]
  for (const path of unknown) expect((await send(api, path)).status, path).toBe(404)
  expect(await readServers(api)).toEqual([{ url: basePath }])
  for (const path of ["/", "/docs/"]) {
    const response = await send(api, basePath + path)
    expect([response.status, response.headers.get("location")]).toEqual([308, `${basePath}/docs`])
  }
})

it("if publicUrl and basePath differ, the API accepts requests only below basePath, and its responses contain publicUrl", async () => {
  const publicUrl = "https://example.com/public"
  const api = await makeApi({ basePath, publicUrl })
  expect(await readServers(api)).toEqual([{ url: publicUrl }])
  expect((await send(api, `${basePath}/`)).headers.get("location")).toBe("/public/docs")
  expect((await send(api, `/public${path}`)).status).toBe(404)
})

it("an API logs every request without secrets, at debug for a probe and at info for any other request, even if the logger throws", async () => {
  const lines: Array<readonly [message: string, fields: HostLogFields]> = []
  const info = (...line: readonly [message: string, fields: HostLogFields]) => {
    lines.push(line)
    throw new Error("disk full")
  }
  const debug = vi.fn()
  const api = await makeApi({ logger: { info, debug } })
  await send(api, "/healthz")
  const probe = expect.objectContaining({ route: "/healthz" })
  expect(debug.mock.calls).toContainEqual(["request", probe])
  expect((await send(api, `${path}?secret=s3cret`)).status).toBe(200)
  const fields = {
    method: "GET",
    route: "/api/v1/prompts/:id",
    status: 200,
    duration_ms: expect.any(Number),
    request_id: expect.any(String),
    workspace_id: tenant.archive.workspace.id,
    key_id: tenant.keys.active.stored.id
  }
  expect(lines).toEqual([["request", fields]])
})

it("an API sends warnings to the method warn of its logger or, without a logger, to stderr as JSON lines", async () => {
  const errors = vi.spyOn(console, "error").mockImplementation(() => {})
  const warn = vi.fn()
  const redisUrl = "redis://127.0.0.1:9"
  await makeApi({ logger: { warn }, redisUrl })
  const message = expect.stringMatching(/^Redis /)
  await expect.poll(() => warn.mock.calls).toContainEqual([message, expect.anything()])
  expect(errors.mock.calls).toEqual([])
  await makeApi({ redisUrl })
  await expect
    .poll(() => errors.mock.calls.map(([line]) => JSON.parse(line)))
    .toContainEqual(expect.objectContaining({ level: "warn", time: expect.any(String) }))
})

it("api.metrics() returns Prometheus text about requests and the process, but throws unless the option metrics is true", async () => {
  const api = await makeApi({ metrics: true })
  await send(api, path)
  const text = api.metrics()
  expect(text).toMatch(/^prompt_retrieval_http_requests_total\{[^}]*route="\/api\/v1\/prompts\/:id"/m)
  expect(text).toMatch(/^prompt_retrieval_process_resident_memory_bytes \d+$/m)
  expect(text).not.toContain(tenant.keys.active.plaintext)
  // A host appends this text to its own metrics. Because of the prefix, no name in the text equals a name of the host.
  const names = text.split("\n").flatMap((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? [])
  expect(names.filter((name) => !name.startsWith("prompt_retrieval_"))).toEqual([])
  const without = await makeApi({})
  expect(() => without.metrics()).toThrow(
    new Error("Metrics are not collected; set the option metrics to true")
  )
})
