import { once } from "node:events"
import { readdirSync } from "node:fs"
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { archive, key, prompt, user, workspace } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { lockTables, promptTables } from "../../support/locks.ts"
import { ask, expectBystandersUnaffected } from "../../support/outcomes.ts"
import { freePort } from "../../support/ports.ts"
import { exchange, exchangeAll, rawRequest } from "../../support/rawHttp.ts"
import { type Service, startService } from "../../support/service.ts"

/** No test waits for another, so that they take as long as the longest; each may be the others' disturbance. */
describe.skipIf(postgres.missing !== undefined)("clients that behave badly", () => {
  const resources = makeResources()
  const owner = user()
  const home = workspace()
  const mine = key(home.id, owner)
  const authorization = `Bearer ${mine.plaintext}`
  const large = prompt({ current_content: "x".repeat(400_000) })
  const huge = prompt({ current_content: "x".repeat(8_000_000) })
  let env: Record<string, string>
  let service: Service

  beforeAll(async () => {
    env = {
      ...(await resources.acquire(postgres.acquire)),
      RATE_LIMIT_PER_KEY: "1000000",
      RATE_LIMIT_PER_PROCESS: "1000000",
      LOG_LEVEL: "Warn"
    }
    service = await startService(env)
    const { importArchive } = await resources.acquire(connectTo(env))
    await importArchive(
      archive({ workspace: home, users: [owner], api_keys: [mine.stored], prompts: [large, huge] })
    )
  })
  afterAll(async () => {
    expect(await service?.stop()).toBe(0)
    // Nobody who went away or asked in vain is worth a line of its own.
    expect(service.output()).toBe("")
    await resources.release()
  })

  it("who hangs up before the answer is told of all the same, by what it would have been", async () => {
    const metricsPort = await freePort()
    const observed = await startService({ ...env, METRICS_PORT: String(metricsPort), LOG_LEVEL: "Info" })
    const release = await lockTables(env.DATABASE_URL!, promptTables)
    const id = "who-hangs-up"
    const socket = connect(observed.port, "127.0.0.1")
    socket.write(
      rawRequest(`/api/v1/prompts/${large.id}`, [`Authorization: ${authorization}`, `X-Request-Id: ${id}`])
    )
    await setTimeout(200)
    socket.resetAndDestroy()
    try {
      await expect.poll(() => observed.output(), { timeout: 8_000 }).toContain(id)
    } finally {
      await release()
    }
    const line = JSON.parse(
      observed
        .output()
        .split("\n")
        .find((text) => text.includes(id))!
    )
    expect(line).toMatchObject({ route: "/api/v1/prompts/:id", status: 503, request_id: id })
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
    expect(metrics).toContain('http_requests_total{route="/api/v1/prompts/:id",status="503"} 1')
    expect(await observed.stop()).toBe(0)
  })

  const descriptors = () => readdirSync(`/proc/${service.process.pid}/fd`).length

  it("2,000 who say nothing, 20 who send a byte a second: told or closed in time, and nobody else waits", async () => {
    const before = descriptors()
    const started = performance.now()
    const said: Array<string> = []
    const last: Array<number> = []
    const sockets = Array.from({ length: 2_020 }, (_, index) => {
      const socket = connect(service.port, "127.0.0.1")
      said[index] = ""
      socket.setEncoding("latin1").on("data", (text) => (said[index] = said[index]! + text))
      socket.on("error", () => {})
      return socket
    })
    await Promise.all(sockets.map((socket) => once(socket, "connect")))
    const closed = sockets.map(async (socket, index) => {
      await once(socket, "close")
      last[index] = performance.now() - started
    })
    const dripping = sockets.slice(2_000).map(async (socket) => {
      for (const byte of rawRequest("/healthz")) {
        if (!socket.writable) return
        socket.write(byte)
        await setTimeout(1_000)
      }
    })
    await expectBystandersUnaffected(service)
    expect((await ask(service, "/api/v1/prompts", authorization)).status).toBe(200)
    await Promise.all([...closed, ...dripping])
    const answers = new Set(said.map((text) => `${text.slice(0, 12)} ${text.split("\r\n\r\n")[1]}`))
    expect([...answers]).toEqual([
      'HTTP/1.1 408 {"error":{"code":"REQUEST_TIMEOUT","message":"Request timeout"}}'
    ])
    expect(Math.max(...last)).toBeLessThan(14_000)
    expect(Math.min(...last)).toBeGreaterThan(9_000)
    await expect.poll(descriptors, { timeout: 8_000 }).toBeLessThan(before + 20)
  }, 60_000)

  it("500 who leave in mid-answer", async () => {
    const before = descriptors()
    const leave = async () => {
      const socket = connect(service.port, "127.0.0.1", () =>
        socket.write(rawRequest(`/api/v1/prompts/${large.id}`, [`Authorization: ${authorization}`]))
      )
      const [first] = (await once(socket, "data")) as [Buffer]
      socket.resetAndDestroy()
      return first.subarray(0, 15).toString()
    }
    const seen = new Set<string>()
    const lane = async () => {
      for (let i = 0; i < 50; i++) seen.add(await leave())
    }
    await Promise.all(Array.from({ length: 10 }, lane))
    expect([...seen]).toEqual(["HTTP/1.1 200 OK"])
    expect((await ask(service, `/api/v1/prompts/${large.id}`, authorization)).status).toBe(200)
    await expect.poll(descriptors, { timeout: 8_000 }).toBeLessThan(before + 20)
  }, 60_000)

  it("who pipelines 10,000 requests gets 10,000 answers, in order", async () => {
    const known = `GET /api/v1/prompts?per_page=1 HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n`
    const unknown = "GET /nowhere HTTP/1.1\r\nHost: a\r\n"
    const requests = Array.from(
      { length: 10_000 },
      (_, i) =>
        `${i % 10 === 0 ? known : unknown}X-Request-Id: ${i}\r\n${i === 9_999 ? "Connection: close\r\n" : ""}\r\n`
    )
    const answering = exchangeAll(service.port, requests.join(""), 60_000)
    await setTimeout(200)
    expect((await ask(service, "/nowhere")).duration).toBeLessThan(5_000)
    const answers = await answering
    expect(answers.map(({ status }) => status)).toEqual(requests.map((_, i) => (i % 10 === 0 ? 200 : 404)))
    expect(
      answers.map(({ headers }) => Number(headers.find(([name]) => name === "x-request-id")![1]))
    ).toEqual(requests.map((_, i) => i))
  }, 90_000)

  it("heads and targets of up to 64 KiB: 431 in the envelope from 16 KiB on, an answer below", async () => {
    const tooLong = { status: 431, said: "HEADERS_TOO_LARGE" }
    const outcome = async (request: string) => {
      const { status, body } = await exchange(service.port, request)
      return { status, said: JSON.parse(body).error.code }
    }
    for (const size of [17, 32, 64]) {
      const long = "x".repeat(size * 1024)
      expect(await outcome(rawRequest(`/${long}`))).toEqual(tooLong)
      expect(await outcome(rawRequest("/nowhere", [`X-Long: ${long}`]))).toEqual(tooLong)
      expect(await outcome(rawRequest("/nowhere", [`${long}: x`]))).toEqual(tooLong)
      expect(await outcome(rawRequest("/nowhere", Array(size * 128).fill("X-A: 12")))).toEqual(tooLong)
    }
    const long = "x".repeat(15 * 1024)
    expect(await outcome(rawRequest(`/${long}`))).toEqual({ status: 404, said: "NOT_FOUND" })
    expect(await outcome(rawRequest(`/api/v1/prompts/${long}`, [`Authorization: ${authorization}`]))).toEqual(
      {
        status: 404,
        said: "NOT_FOUND"
      }
    )
    expect(await outcome(rawRequest("/api/v1/prompts", [`Authorization: Bearer ${long}`]))).toEqual({
      status: 401,
      said: "UNAUTHORIZED"
    })
  })

  it("who asks for more than it reads holds up nobody but itself, and leaves nothing behind", async () => {
    const one = `GET /api/v1/prompts/${huge.id} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`
    const readers = Array.from({ length: 5 }, () => {
      const socket = connect(service.port, "127.0.0.1", () => socket.write(one.repeat(3)))
      return socket
    })
    await Promise.all(readers.map((socket) => once(socket, "readable")))
    await expectBystandersUnaffected(service)
    expect((await ask(service, "/api/v1/prompts", authorization)).status).toBe(200)
    for (const socket of readers) socket.destroy()
  }, 60_000)
})
