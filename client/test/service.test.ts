import { spawnSync } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo, createServer as createTcpServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest"
import {
  type ClientOptions,
  ConnectionError,
  fillSlots,
  InvalidResponseError,
  NotFoundError,
  PromptClient,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError,
  UnauthorizedError
} from "../src/index.ts"
import type { ArchivePrompt } from "../../src/application/formats/Archive.ts"
import { startObserved } from "../../test/support/observed.ts"
import type { Service } from "../../test/support/service.ts"
import { emitClient } from "./emit.ts"
import { type Fault, type FaultProxy, startFaultProxy } from "./FaultProxy.ts"
import { flush } from "./support.ts"

const root = join(import.meta.dirname, "../..")
const demo = JSON.parse(readFileSync(join(root, "src/demo/workspace.json"), "utf8"))
const prompts: ReadonlyArray<ArchivePrompt> = demo.prompts
const agent = prompts.find(({ title }) => title === "Support agent")!

let folder: string
let service: Service
let key: string
let proxy: FaultProxy

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "prompts-"))
  service = await startObserved({ DATA_DIR: folder })
  const text = () => /key_live_[0-9a-f]{64}/.exec(service.output())?.[0]
  key = await vi.waitUntil(text, { timeout: 10_000 })
  proxy = await startFaultProxy(service.url)
})
afterAll(async () => {
  await proxy?.close()
  await service?.stop()
  if (folder !== undefined) rmSync(folder, { recursive: true })
})

const connect = (options: Partial<ClientOptions> = {}) =>
  new PromptClient({ apiKey: key, baseUrl: service.url, ...options })

const listed = prompts
  .filter(({ is_archived }) => !is_archived)
  .toSorted((a, b) => (a.updated_at + a.id < b.updated_at + b.id ? 1 : -1))

describe("the client of a real service", () => {
  it("lists one page, or every page", async () => {
    const client = connect()
    const { data, meta } = await client.prompts.list({ page: 2, per_page: 2, tag: undefined })
    expect(data.map(({ id }) => id)).toEqual(listed.slice(2, 4).map(({ id }) => id))
    expect(meta).toEqual({ page: 2, per_page: 2, total: 6 })
    const titles: Array<string> = []
    for await (const { title } of client.prompts.list({ per_page: 2 })) titles.push(title)
    expect(titles).toEqual(listed.map(({ title }) => title))
    const filtered = await client.prompts.list({ type: "template", tag: "production" })
    expect(filtered.data.map(({ title }) => title)).toEqual(["Product announcement"])
  })

  it("reads a prompt, its content and its versions as the service has them", async () => {
    const client = connect()
    const raw = async (path: string) => {
      const headers = { authorization: `Bearer ${key}` }
      return (await fetch(`${service.url}/api/v1/prompts/${agent.id}${path}`, { headers })).json()
    }
    expect(await client.prompts.get(agent.id)).toEqual(await raw(""))
    expect(await client.prompts.getResolved(agent.id)).toEqual(await raw("/resolved"))
    expect(await client.prompts.versions.get(agent.id, 2)).toEqual(await raw("/versions/2"))
    expect(await client.prompts.versions.list(agent.id, { per_page: 2 })).toEqual(
      await raw("/versions?per_page=2")
    )
    const numbers: Array<number> = []
    for await (const version of client.prompts.versions.list(agent.id, { per_page: 1 })) {
      numbers.push(version.version_number)
    }
    expect(numbers).toEqual([3, 2, 1])
    const { data } = await client.prompts.getResolved(agent.id)
    expect(fillSlots(data.resolved_content, { shop: "Acme" })).toMatch(/^You are a support agent of Acme\. /)
  })

  it("fails as the service does", async () => {
    const client = connect()
    const unknown = "00000000-0000-4000-8000-000000000000"
    await expect(client.prompts.get(unknown)).rejects.toMatchObject({
      name: "NotFoundError",
      status: 404,
      code: "NOT_FOUND",
      message: "Prompt not found",
      requestId: expect.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
      retryAfter: undefined
    })
    const calls = [
      client.prompts.get("a/../b?c"),
      client.prompts.getResolved(unknown),
      client.prompts.versions.list(unknown),
      client.prompts.versions.get(agent.id, 99)
    ]
    await Promise.all(calls.map((call) => expect(call).rejects.toBeInstanceOf(NotFoundError)))
    await expect(client.prompts.list({ folder_id: "no uuid" })).rejects.toMatchObject({
      name: "BadRequestError",
      message: "folder_id must be a UUID"
    })
    await expect(connect({ apiKey: `key_live_${"0".repeat(64)}` }).prompts.list()).rejects.toBeInstanceOf(
      UnauthorizedError
    )
    const sent = await client.prompts
      .get(unknown, { headers: { "x-request-id": "mine" } })
      .catch((error) => error)
    expect(sent.requestId).toBe("mine")
  })

  it("confirms what it has by its ETag", async () => {
    proxy.requests.length = 0
    const client = connect({ baseUrl: proxy.url, cache: { ttl: 0, maxStale: 0 } })
    const first = await client.prompts.getResolved(agent.id)
    const second = await client.prompts.getResolved(agent.id)
    expect([first.source, second.source]).toEqual(["fresh", "fresh"])
    expect(second).toEqual(first)
    expect(proxy.requests.map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      expect.stringMatching(/^"[\w-]+"$/)
    ])
  })

  it("makes one request of a thousand", async () => {
    proxy.requests.length = 0
    const client = connect({ baseUrl: `${proxy.url}/`, cache: {} })
    const one = new AbortController()
    const reads = Array.from({ length: 1_000 }, () => client.prompts.getResolved(agent.id))
    const aborted = client.prompts.getResolved(agent.id, { signal: one.signal }).catch(({ name }) => name)
    one.abort()
    expect(await aborted).toBe("AbortError")
    const titles = (await Promise.all(reads)).map(({ data }) => data.title)
    expect(new Set(titles)).toEqual(new Set(["Support agent"]))
    expect(proxy.requests).toHaveLength(1)
  })
})

const answer =
  (status: number, headers: Record<string, string>, body: string): Fault =>
  (_, response) =>
    void response.writeHead(status, headers).end(body)

const json = { "content-type": "application/json" }

const faults = {
  reset: (request: IncomingMessage) => void request.socket.resetAndDestroy(),
  resetInHead: (request: IncomingMessage) => void request.socket.end("HTTP/1.1 200 OK\r\ncontent-"),
  resetInBody: (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { ...json, "content-length": "100" })
    response.write('{"data":', () => response.destroy())
  },
  noHttp: (request: IncomingMessage) => void request.socket.end("220 mail.example.com ESMTP\r\n"),
  unavailable: answer(503, json, '{"error":{"code":"SERVICE_UNAVAILABLE","message":"Service unavailable"}}'),
  badGateway: answer(502, { "content-type": "text/html" }, "<html>Bad gateway</html>"),
  limited: answer(
    429,
    { ...json, "retry-after": "9" },
    '{"error":{"code":"RATE_LIMITED","message":"Rate limit exceeded"}}'
  ),
  silence: () => {},
  silenceInBody: (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { ...json, "content-length": "100" })
    response.write('{"data":')
  }
} satisfies Record<string, Fault>

describe("faults on the way", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
    proxy.faults.length = 0
    proxy.requests.length = 0
  })
  afterEach(() => void vi.useRealTimers())

  /** A client whose waits between attempts are over at once: as it tells of a failed attempt, time jumps. */
  const hurried = (options: Partial<ClientOptions> = {}) =>
    connect({
      baseUrl: proxy.url,
      logger: { warn: () => void flush().then(() => vi.advanceTimersByTime(10_000)) },
      ...options
    })

  it.each(["reset", "resetInHead", "resetInBody", "noHttp", "unavailable", "badGateway", "limited"] as const)(
    "are got over by asking again: %s",
    async (name) => {
      proxy.faults.push(faults[name], faults[name])
      const { data } = await hurried().prompts.get(agent.id)
      expect(data.title).toBe("Support agent")
      expect(proxy.requests.map(({ url }) => url)).toEqual(Array(3).fill(`/api/v1/prompts/${agent.id}`))
    }
  )

  it.each([
    ["reset", ConnectionError],
    ["resetInHead", ConnectionError],
    ["resetInBody", ConnectionError],
    ["noHttp", ConnectionError],
    ["unavailable", ServiceUnavailableError],
    ["badGateway", InvalidResponseError],
    ["limited", RateLimitedError]
  ] as const)("that stay are told: %s", async (name, Class) => {
    proxy.faults.push(faults[name], faults[name], faults[name])
    const error = await hurried({ timeout: 60_000 })
      .prompts.get(agent.id)
      .catch((error) => error)
    expect(error).toBeInstanceOf(Class)
    expect(proxy.requests).toHaveLength(3)
  })

  it.each(["silence", "silenceInBody"] as const)("are not waited for past the timeout: %s", async (name) => {
    const begun = new Promise<void>((resolve) => {
      proxy.faults.push((request, response) => {
        faults[name](request, response)
        request.socket.once("close", closed)
        resolve()
      })
    })
    let closed = () => {}
    const connectionClosed = new Promise<void>((resolve) => (closed = resolve))
    const call = connect({ baseUrl: proxy.url, timeout: 3_000 }).prompts.get(agent.id)
    call.catch(() => {})
    await begun
    await flush()
    vi.advanceTimersByTime(3_000)
    await expect(call).rejects.toEqual(new TimeoutError("No result within 3000 ms"))
    await connectionClosed
    expect(proxy.requests).toHaveLength(1)
  })

  it("are told of a port where nobody listens, and of a host that there is not", async () => {
    const server = createTcpServer().listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    server.close()
    await once(server, "close")
    const call = hurried({ baseUrl: `http://127.0.0.1:${port}` }).prompts.list()
    await expect(call).rejects.toEqual(
      new ConnectionError(`No answer from the service: fetch failed: connect ECONNREFUSED 127.0.0.1:${port}`)
    )
  })

  it.each([
    ["malformed JSON", answer(200, json, '{"data":')],
    ["a page", answer(200, { "content-type": "text/html" }, "<html></html>")],
    ["another shape", answer(200, json, '{"prompts":[]}')]
  ])("that look like an answer are none: %s", async (_, fault) => {
    proxy.faults.push(fault)
    await expect(hurried().prompts.get(agent.id)).rejects.toBeInstanceOf(InvalidResponseError)
    expect(proxy.requests).toHaveLength(1)
  })

  it("never lead the key elsewhere", async () => {
    const asked: Array<string | undefined> = []
    const elsewhere = createServer((request, response) => {
      asked.push(request.headers.authorization)
      response.end()
    }).listen(0, "127.0.0.1")
    await once(elsewhere, "listening")
    const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`
    try {
      for (const status of [301, 302, 303, 307, 308]) {
        proxy.faults.push(answer(status, { location }, ""))
        await expect(hurried().prompts.get(agent.id)).rejects.toMatchObject({
          name: "InvalidResponseError",
          status
        })
      }
      expect(asked).toEqual([])
    } finally {
      elsewhere.close()
      elsewhere.closeAllConnections()
      await once(elsewhere, "close")
    }
  })

  it("are ridden out by the cache, until maxStale", async () => {
    let failed = () => {}
    const client = connect({
      baseUrl: proxy.url,
      cache: { ttl: 1_000, maxStale: 60_000 },
      maxRetries: 0,
      logger: { warn: () => failed() }
    })
    const read = async () => (await client.prompts.getResolved(agent.id)).source
    expect(await read()).toBe("fresh")
    for (const name of ["reset", "unavailable", "badGateway"] as const) {
      vi.advanceTimersByTime(2_000)
      const askedInVain = new Promise<void>((resolve) => {
        failed = resolve
      })
      proxy.faults.push(faults[name])
      expect(await read()).toBe("stale")
      await askedInVain
      await flush()
    }
    vi.advanceTimersByTime(60_000)
    proxy.faults.push(faults.reset)
    await expect(read()).rejects.toBeInstanceOf(ConnectionError)
    expect(await read()).toBe("fresh")
  })
})

/** The machine's own Node, which need not be the one that runs the tests. */
const machinePath = process.env
  .PATH!.split(delimiter)
  .filter((entry) => !entry.includes("node_modules"))
  .join(delimiter)

const runNode = (args: ReadonlyArray<string>, env: Record<string, string>, machine = false) => {
  const command = machine ? ["/usr/bin/env", "node"] : [process.execPath]
  const { status, stdout, stderr } = spawnSync(command[0]!, [...command.slice(1), ...args], {
    env: { PATH: machinePath, ...env },
    encoding: "utf8",
    timeout: 15_000
  })
  return { status, stdout, stderr }
}

describe("elsewhere", () => {
  it("the emitted client runs under the machine's own Node", () => {
    const emitted = emitClient()
    try {
      writeFileSync(
        join(emitted, "main.js"),
        `import { fillSlots, NotFoundError, PromptClient } from "./index.js"
const client = new PromptClient({ apiKey: process.env.API_KEY, baseUrl: process.env.BASE_URL, cache: {} })
const titles = []
for await (const { title } of client.prompts.list({ per_page: 4 })) titles.push(title)
const id = process.argv[2]
const sources = [await client.prompts.get(id), await client.prompts.get(id)].map(({ source }) => source)
const { data } = await client.prompts.getResolved(id)
const filled = fillSlots(data.resolved_content, { shop: "Acme" }).slice(0, 32)
const missing = await client.prompts.versions.get(id, 99).catch((error) => error instanceof NotFoundError)
const { meta } = await client.prompts.versions.list(id)
console.log(JSON.stringify({ titles, sources, filled, missing, meta }))
`
      )
      const env = { API_KEY: key, BASE_URL: service.url }
      const { status, stdout, stderr } = runNode([join(emitted, "main.js"), agent.id], env, true)
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
      expect(JSON.parse(stdout)).toEqual({
        titles: listed.map(({ title }) => title),
        sources: ["fresh", "cached"],
        filled: "You are a support agent of Acme.",
        missing: true,
        meta: { page: 1, per_page: 20, total: 3 }
      })
    } finally {
      rmSync(emitted, { recursive: true })
    }
  })

  it("the example runs", () => {
    const example = join(root, "examples/client-cache.ts")
    const line = "Be brief and friendly, and end with one clear next step."
    expect(runNode([example, agent.id], { API_KEY: key, BASE_URL: service.url })).toEqual({
      status: 0,
      stdout: [
        `Support agent (fresh): You are a support agent of Acme. ${line}`,
        `Support agent (cached): You are a support agent of Globex. ${line}`,
        ""
      ].join("\n"),
      stderr: ""
    })
  })

  // The last: the key is spent for the rest of the minute.
  it("the service's own limit is told with the time that it lasts", async () => {
    const client = connect({ maxRetries: 0 })
    let error: unknown
    for (let requests = 0; error === undefined && requests < 250; requests++) {
      await client.prompts.get(agent.id).catch((refusal) => (error = refusal))
    }
    expect(error).toBeInstanceOf(RateLimitedError)
    const { retryAfter } = error as RateLimitedError
    expect(retryAfter).toBeGreaterThanOrEqual(1)
    expect(retryAfter).toBeLessThanOrEqual(60)
    await expect(client.prompts.list({}, { timeout: 1 })).rejects.toBeInstanceOf(RateLimitedError)
  })
})
