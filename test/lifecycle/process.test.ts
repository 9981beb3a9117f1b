import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { Agent, get, type IncomingMessage } from "node:http"
import { connect, createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { prompt, sample } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { lockTables, promptTables } from "../support/locks.ts"
import { freePort } from "../support/ports.ts"
import { exchangeAll, headerOf } from "../support/rawHttp.ts"
import { run, type Service, startService } from "../support/service.ts"

describe.skipIf(postgres.missing !== undefined)("a process that is told to stop", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const large = prompt({ current_content: "x".repeat(8_000_000) })
  const authorization = `Bearer ${keys.active.plaintext}`
  let database: Record<string, string>

  const start = (env: Record<string, string> = {}) => startService({ ...database, ...env })

  /** Asks over a connection that the client means to keep. */
  const ask = async (service: Service, path: string, agent = new Agent({ keepAlive: true })) => {
    const request = get(service.url + path, { agent, headers: { authorization } })
    const [response] = (await once(request, "response")) as [IncomingMessage]
    const body = await text(response)
    return { status: response.statusCode, connection: response.headers.connection, body }
  }

  /** A connection on which a large answer comes. */
  const largeAnswer = (service: Service) => {
    const lines = [
      `GET /api/v1/prompts/${large.id} HTTP/1.1`,
      "Host: a",
      `Authorization: ${authorization}`,
      "",
      ""
    ]
    const socket = connect(service.port, "127.0.0.1", () => socket.write(lines.join("\r\n")))
    return socket
  }

  const refuses = (service: Service) =>
    expect
      .poll(() => ask(service, "/healthz").then(() => "accepted", String), { timeout: 4_000 })
      .toContain("ECONNREFUSED")

  let release = async () => {}
  const lock = async () => {
    release = await lockTables(database.DATABASE_URL!, promptTables)
  }
  afterEach(() => release())

  beforeAll(async () => {
    database = await resources.acquire(postgres.acquire)
    const service = await start()
    const { importArchive } = await resources.acquire(connectTo(database))
    await importArchive({ ...archive, prompts: [...archive.prompts, large] })
    expect(await service.stop()).toBe(0)
  })
  afterAll(() => resources.release())

  it("goes on when nobody reads its log any more, and ends with 0", async () => {
    for (const LOG_FORMAT of ["json", "pretty"]) {
      const service = await start({ LOG_FORMAT, LOG_LEVEL: "All" })
      service.process.stderr!.destroy()
      for (let i = 0; i < 5; i++) expect((await ask(service, "/api/v1/prompts")).status).toBe(200)
      expect(await service.stop()).toBe(0)
    }
  })

  it("says so, takes what comes in its grace, finishes what runs and ends with 0", async () => {
    const service = await start({ SHUTDOWN_GRACE: "1 second" })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect(await ask(service, "/readyz", agent)).toMatchObject({ status: 200, connection: "keep-alive" })
    await lock()
    const stopped = service.stop()
    await expect.poll(async () => (await ask(service, "/readyz", agent)).status).toBe(503)
    expect(await ask(service, "/healthz", agent)).toMatchObject({ status: 200, connection: "keep-alive" })
    // Asked within the grace, answered after it: the lock is only released once nobody is accepted any more.
    const underWay = ask(service, "/api/v1/prompts?per_page=1")
    await refuses(service)
    await release()
    expect(await underWay).toMatchObject({ status: 200, connection: "close" })
    expect(await stopped).toBe(0)
  })

  it("waits for nobody who asks nothing: kept connections, new ones, half a head", async () => {
    const service = await start()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    await ask(service, "/healthz", agent)
    const silent = connect(service.port, "127.0.0.1")
    const half = connect(service.port, "127.0.0.1", () =>
      half.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /hea")
    )
    await Promise.all([once(silent, "connect"), once(half, "data")])
    const started = performance.now()
    expect(await service.stop()).toBe(0)
    expect(performance.now() - started).toBeLessThan(3_000)
    silent.destroy()
    half.destroy()
  })

  it("ends hard when it is told a second time", async () => {
    const service = await start()
    await lock()
    const underWay = ask(service, "/api/v1/prompts").catch((error) => error.code)
    // Its look-up has gone through: the request waits for the lock.
    const { sql } = await resources.acquire(connectTo(database))
    await expect
      .poll(() => sql("select count(*)::int as n from pg_locks where not granted"))
      .not.toEqual([{ n: 0 }])
    const stopped = service.stop()
    await refuses(service)
    await new Promise((resolve) => setTimeout(resolve, 300))
    service.process.kill("SIGTERM")
    expect(await stopped).toBe(143)
    expect(service.output()).toContain("prompt-retrieval: told twice to stop")
    expect(await underWay).toBe("ECONNRESET")
  })

  it("takes a signal that comes twice at once for one, as Ctrl+C under npm does", async () => {
    const service = await start({ SHUTDOWN_GRACE: "1 second" })
    service.process.kill("SIGINT")
    await expect.poll(async () => (await ask(service, "/readyz")).status, { interval: 1 }).toBe(503)
    expect(await service.stop()).toBe(0)
  })

  it("sends an answer to its end to whoever takes it late", async () => {
    const service = await start()
    const answered = largeAnswer(service)
    await once(answered, "readable")
    const stopped = service.stop()
    await refuses(service)
    expect((await text(answered)).length).toBeGreaterThan(8_000_000)
    expect(await stopped).toBe(0)
  })

  it("a shutdown sends every pipelined response that is in flight, and closes with the last one", async () => {
    const service = await start()
    await lock()
    const one = `GET /api/v1/prompts?per_page=1 HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`
    const answering = exchangeAll(service.port, one.repeat(3))
    const { sql } = await resources.acquire(connectTo(database))
    await expect
      .poll(() => sql("select count(*)::int as n from pg_locks where not granted"))
      .not.toEqual([{ n: 0 }])
    const stopped = service.stop()
    await refuses(service)
    await release()
    const answers = await answering
    expect(answers.map((answer) => [answer.status, headerOf(answer, "connection")])).toEqual([
      [200, "keep-alive"],
      [200, "keep-alive"],
      [200, "close"]
    ])
    expect(await stopped).toBe(0)
  })

  it("a reader that stalled 5 s before the shutdown does not hold it up, and the exit code is 0", async () => {
    const service = await start()
    const reader = largeAnswer(service)
    await once(reader, "readable")
    await new Promise((resolve) => setTimeout(resolve, 8_000))
    const started = performance.now()
    expect(await service.stop()).toBe(0)
    expect(performance.now() - started).toBeLessThan(5_000)
    reader.destroy()
  }, 40_000)

  it("breaks off an answer that is not taken by the deadline, and ends with 1", async () => {
    const service = await start()
    const reader = largeAnswer(service)
    await once(reader, "readable")
    const started = performance.now()
    expect(await service.stop()).toBe(1)
    expect(performance.now() - started).toBeGreaterThan(9_900)
    expect(performance.now() - started).toBeLessThan(14_000)
    expect(service.output()).toContain("prompt-retrieval: answers were broken off: not taken within 10 s")
    reader.destroy()
  }, 40_000)
})

describe("a bad environment stops the start with one line that names the variable", () => {
  const directory = mkdtempSync(join(tmpdir(), "environment-"))
  afterAll(() => rmSync(directory, { recursive: true }))

  const bad: ReadonlyArray<readonly [name: string, value: string, rule: string]> = [
    [
      "DATABASE_URL",
      "mysql://s3cret@host/db",
      "must be a URL like postgres://user:password@host:5432/database"
    ],
    ["DATABASE_URL", "s3cret", "must be a URL like postgres://user:password@host:5432/database"],
    ["REDIS_URL", "http://s3cret@host", "must be a URL like redis://host:6379"],
    ["PORT", "s3cret", "must be a port, 0 to 65535"],
    ["PORT", "65536", "must be a port, 0 to 65535"],
    ["PORT", "-1", "must be a port, 0 to 65535"],
    ["RATE_LIMIT_PER_KEY", "0", "must be an integer of at least 1"],
    ["RATE_LIMIT_PER_PROCESS", "1.5", "must be an integer of at least 1"],
    ["SHUTDOWN_GRACE", "s3cret", "must be a duration such as 5 seconds"],
    ["SHUTDOWN_GRACE", "-1 second", "must be a duration such as 5 seconds"],
    ["SHUTDOWN_GRACE", "Infinity", "must be a duration such as 5 seconds"],
    ["LOG_LEVEL", "s3cret", "must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None"],
    ["LOG_FORMAT", "xml", "must be pretty or json"]
  ]

  it.for(bad)("%s=%s", async ([name, value, rule]) => {
    expect(await run(["serve"], { DATA_DIR: join(directory, "never"), PORT: "0", [name]: value })).toEqual({
      code: 1,
      stdout: "",
      stderr: `prompt-retrieval: ${name} ${rule}\n`
    })
  })

  const unreachable = "postgres://postgres@127.0.0.1:9/none"

  it("HOST that is none of this machine's", async () => {
    const ran = await run(["serve"], { DATABASE_URL: unreachable, PORT: "0", HOST: "192.0.2.1" })
    expect(ran).toMatchObject({ code: 1, stdout: "" })
    expect(ran.stderr).toMatch(/^prompt-retrieval: HOST and PORT can't be listened on: .*192\.0\.2\.1\S*\n$/)
  })

  it("PORT that somebody else has", async () => {
    const port = await freePort()
    const taken = createServer().listen(port, "127.0.0.1")
    await once(taken, "listening")
    const ran = await run(["serve"], { DATABASE_URL: unreachable, PORT: String(port) })
    taken.close()
    expect(ran).toEqual({
      code: 1,
      stdout: "",
      stderr: `prompt-retrieval: HOST and PORT can't be listened on: listen EADDRINUSE: address already in use 127.0.0.1:${port}\n`
    })
  })

  it("DATA_DIR that is a file", async () => {
    const file = join(directory, "file")
    writeFileSync(file, "")
    const ran = await run(["serve"], { DATA_DIR: file, PORT: "0" })
    expect(ran).toMatchObject({ code: 1, stdout: "" })
    expect(ran.stderr).toMatch(/^prompt-retrieval: DATA_DIR: \S+ can't be used: [^\n]+\n$/)
    expect(ran.stderr).toContain(file)
  })
})
