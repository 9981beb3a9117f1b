import { afterEach, describe, expect, it, vi } from "vitest"
import { createPromptApi, type HostLogFields, type HostLogger, type PromptApi } from "../../src/index.ts"
import { sample } from "../support/archives.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const tenant = sample()
const path = `/api/v1/prompts/${tenant.archive.prompts[0]!.id}`
const key = tenant.keys.active.plaintext
const headers = { authorization: `Bearer ${key}` }

type Settings = Pick<
  Parameters<typeof createPromptApi>[0],
  "basePath" | "logger" | "metrics" | "publicUrl" | "rateLimits" | "redisUrl"
>

const { env } = makeTestDatabase([tenant.archive])

const apis: Array<PromptApi> = []
/** Creates an API for the sample workspace. The API is closed after the test. */
const makeApi = async (settings: Settings): Promise<PromptApi> => {
  const api = await createPromptApi({ databaseUrl: env.DATABASE_URL, ...settings })
  apis.push(api)
  return api
}
afterEach(async () => {
  vi.restoreAllMocks()
  for (const api of apis.splice(0)) await api.close()
})

const send = (api: PromptApi, target: string) =>
  api.handler(new Request(`http://host.example${target}`, { headers }))

const readStatuses = async (api: PromptApi, targets: ReadonlyArray<string>) =>
  Object.fromEntries(
    await Promise.all(targets.map(async (target) => [target, (await send(api, target)).status] as const))
  )

describe("the option rateLimits of createPromptApi", () => {
  it.each([
    [{ perKey: 2 }, '"key";q=2;w=60'],
    [{ perProcess: 2 }, '"process";q=2;w=60'],
    [{ perKey: 2, perProcess: 3 }, '"key";q=2;w=60']
  ])("an API with the rateLimits %j rejects the third request", async (rateLimits, policy) => {
    const api = await makeApi({ rateLimits })
    const responses = []
    for (let count = 0; count < 3; count++) responses.push(await send(api, path))
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(responses[2]!.headers.get("ratelimit-policy")).toBe(policy)
  })
})

describe("the option basePath of createPromptApi", () => {
  const basePath = "/prompts-service/v2"

  it("basePath is the prefix of every path of the API, and all other paths return 404", async () => {
    const api = await makeApi({ basePath })
    const paths = [path, `${path}/versions?per_page=1`, "/healthz", "/readyz", "/openapi.json", "/docs"]
    expect(
      await readStatuses(
        api,
        paths.map((path) => basePath + path)
      )
    ).toEqual(Object.fromEntries(paths.map((path) => [basePath + path, 200])))
    const unknown = [
      ...paths,
      basePath,
      `${basePath}${basePath}${path}`,
      `${basePath}x${path}`,
      `${basePath.toUpperCase()}${path}`,
      `/prompts-service${path}`,
      `/x${basePath}${path}`,
      `/${basePath}${path}`,
      `${basePath}/${path}`
    ]
    expect(await readStatuses(api, unknown)).toEqual(Object.fromEntries(unknown.map((path) => [path, 404])))
  })

  const readServers = async (api: PromptApi, path: string) =>
    JSON.parse(await (await send(api, path)).text()).servers

  it("the server URL of the OpenAPI document and the redirects to /docs start with basePath", async () => {
    const api = await makeApi({ basePath })
    expect(await readServers(api, `${basePath}/openapi.json`)).toEqual([{ url: basePath }])
    for (const path of ["/", "/docs/"]) {
      const response = await send(api, basePath + path)
      expect([response.status, response.headers.get("location")]).toEqual([308, `${basePath}/docs`])
    }
  })

  it("if publicUrl has a different path than basePath, the API accepts requests only below basePath, and its responses contain publicUrl", async () => {
    const publicUrl = "https://example.com/public"
    const api = await makeApi({ basePath, publicUrl })
    expect(await readServers(api, `${basePath}/openapi.json`)).toEqual([{ url: publicUrl }])
    expect((await send(api, `${basePath}/`)).headers.get("location")).toBe("/public/docs")
    expect((await send(api, `/public${path}`)).status).toBe(404)
  })
})

describe("the option logger of createPromptApi", () => {
  type Line = readonly [level: string, message: string, fields: HostLogFields]
  const makeLogger = (levels: ReadonlyArray<keyof HostLogger>) => {
    const lines: Array<Line> = []
    const logger: HostLogger = Object.fromEntries(
      levels.map((level) => [
        level,
        (message: string, fields: HostLogFields) => void lines.push([level, message, fields])
      ])
    )
    return { lines, logger }
  }

  it("a logger with the method info receives a line for each request, without the key, the query or a prompt", async () => {
    const { lines, logger } = makeLogger(["info", "warn"])
    const api = await makeApi({ logger })
    await send(api, `${path}?secret=s3cret`)
    expect(lines).toEqual([
      [
        "info",
        "request",
        {
          method: "GET",
          route: "/api/v1/prompts/:id",
          status: 200,
          duration_ms: expect.any(Number),
          request_id: expect.any(String),
          workspace_id: tenant.archive.workspace.id,
          key_id: tenant.keys.active.stored.id
        }
      ]
    ])
  })

  it("a logger that has only the method warn receives warnings, and nothing goes to stderr", async () => {
    const errors = vi.spyOn(console, "error")
    const { lines, logger } = makeLogger(["warn"])
    const api = await makeApi({ logger, redisUrl: "redis://127.0.0.1:9" })
    await send(api, path)
    await expect
      .poll(() => lines.map(([level, message]) => `${level} ${message}`))
      .toEqual([expect.stringMatching(/^warn Redis /)])
    expect(errors.mock.calls).toEqual([])
  })

  it("a logger that throws does not make a request fail", async () => {
    const logger = {
      info: () => {
        throw new Error("disk full")
      }
    }
    expect((await send(await makeApi({ logger }), path)).status).toBe(200)
  })

  it("without a logger, the API writes warnings and errors to stderr as JSON lines", async () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => {})
    const api = await makeApi({ redisUrl: "redis://127.0.0.1:9" })
    await send(api, path)
    await expect.poll(() => errors.mock.calls.length).toBe(1)
    expect(JSON.parse(errors.mock.calls[0]![0])).toMatchObject({ level: "warn", time: expect.any(String) })
  })
})

describe("the option metrics of createPromptApi", () => {
  it("with metrics set to true, api.metrics() returns metrics of requests and of the process as Prometheus text", async () => {
    const api = await makeApi({ metrics: true })
    await send(api, path)
    const text = api.metrics()
    expect(text).toMatch(
      /^prompt_retrieval_http_requests_total\{[^}]*route="\/api\/v1\/prompts\/:id"[^}]*\} \d+$/m
    )
    expect(text).toMatch(/^# TYPE prompt_retrieval_http_request_duration_seconds histogram$/m)
    expect(text).toMatch(/^prompt_retrieval_process_resident_memory_bytes \d+$/m)
    expect(text).not.toContain(key)
    // A host appends this text to its own metrics. Because of the prefix, no name in the text equals a name of the host.
    const names = text.split("\n").flatMap((line) => /^# TYPE (\S+)/.exec(line)?.[1] ?? [])
    expect(names.filter((name) => !name.startsWith("prompt_retrieval_"))).toEqual([])
  })

  it("without the option metrics, api.metrics() throws", async () => {
    const api = await makeApi({})
    expect(() => api.metrics()).toThrow(
      new Error("Metrics are not collected; set the option metrics to true")
    )
  })
})
