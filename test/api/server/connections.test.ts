import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import type { ConnectionLimits } from "../../../src/adapters/inbound/http/server/ConnectionLimits.ts"
import { makeTenant, prompt } from "../../support/archives.ts"
import { exchange, exchangeAll, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { read } from "../../support/clients/read.ts"
import { lockTables, promptTables, waitForBlockedQuery } from "../../support/database/locks.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { startService } from "../../support/services/startService.ts"

/** Returns the client port of each connection that a server process still holds open on its port. */
const findHeldConnections = (serverPort: number): ReadonlySet<number> => {
  const local = serverPort.toString(16).toUpperCase().padStart(4, "0")
  const held = new Set<number>()
  for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n")) {
    const fields = line.trim().split(/\s+/)
    const [localPort, remotePort] = [fields[1], fields[2]].map((address) => address?.split(":")[1])
    const isListening = fields[3] === "0A"
    // The kernel still lists a connection after the process has closed it, but with the inode 0.
    if (localPort === local && !isListening && fields[9] !== "0") held.add(Number.parseInt(remotePort!, 16))
  }
  return held
}

const open = async (port: number): Promise<Socket> => {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
  socket.on("error", () => {})
  await once(socket, "connect")
  return socket
}

const waitForBytesOrEnd = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    for (const event of ["data", "end", "close"]) socket.once(event, () => resolve())
  })

/** Returns the text of pipelined GET requests. */
const pipeline = (path: string, count: number): string =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count)

/** The path of a document of 0.2 MB, which the service sends without a key and without the database. */
const document = "/openapi.json"

const stored = prompt()
/**
 * Makes a prompt whose response has 6 MiB, because each character takes 6 bytes in JSON. The socket buffers of client
 * and server hold less.
 */
const largest = () => prompt({ current_content: "\u0001".repeat(1024 * 1024) })
const [large, otherLarge] = [largest(), largest()]
const own = makeTenant({ prompts: [stored, large] })
const other = makeTenant({ prompts: [otherLarge] })
const authorization = `Authorization: Bearer ${own.key.plaintext}`
const target = `/api/v1/prompts/${stored.id}`

const database = makeTestDatabase([own.archive, other.archive])
const shortLimits = {
  headersTimeout: 1_000,
  requestTimeout: 1_500,
  connectionsCheckingInterval: 100,
  timeout: 3_000,
  keepAliveTimeout: 1_000
}

/**
 * Starts the service with these limits. When a connection closes, the service prints how many bytes it has read from the
 * connection.
 */
const start = (limits: Partial<ConnectionLimits> = {}) => {
  const env = { ...database.env, LIMITS: JSON.stringify(limits) }
  return startService(env, "/readyz", [], join(import.meta.dirname, "limitedService.ts"))
}

/**
 * The states in which a client can abandon a request. Each function returns the bytes that the client has sent by then.
 */
const states: Readonly<Record<string, (line: string, lines: string) => string>> = {
  "before the head": () => "",
  "in the head": (line, lines) => `${line} HTTP/1.1\r\nHost: a\r\n${lines}X: `,
  "in the body": (line, lines) =>
    `${line.replace("GET", "POST")} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n${lines}\r\n1234`,
  "while the request waits for the database": (line, lines) =>
    `${line.replace(document, target)} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n${lines}\r\n`,
  "while the response is sent": (line, lines) =>
    `${pipeline(document, 80)}${line} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`,
  "after the response": (line, lines) =>
    `${line.replace(document, "/healthz")} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`
}
const kinds: Readonly<Record<string, readonly [before: string, line: string, lines: string]>> = {
  plain: ["", "GET /openapi.json", ""],
  pipelined: [pipeline("/healthz", 3), "GET /openapi.json", ""],
  CONNECT: ["", "CONNECT a:1", ""],
  "pipelined CONNECT": [pipeline("/readyz", 1), "CONNECT a:1", ""],
  Upgrade: ["", "GET /openapi.json", "Connection: Upgrade\r\nUpgrade: websocket\r\n"],
  Expect: ["", "GET /openapi.json", "Expect: 100-continue\r\n"],
  "unknown Expect": ["", "GET /openapi.json", "Expect: a-miracle\r\n"]
}
const endings: Readonly<Record<string, (socket: Socket) => void>> = {
  reset: (socket) => socket.resetAndDestroy(),
  FIN: (socket) => {
    socket.on("end", () => socket.destroy()).resume()
    socket.end()
  },
  silence: () => {},
  "half-close": (socket) => socket.end()
}

it("the service closes every connection whose client disconnects or stops in the middle of an exchange, and can then exit", async () => {
  const { port, stop } = await start(shortLimits)
  // The service generates the document for the first request.
  await expect.poll(async () => (await exchangeAll(port, rawRequest(document, [], "HEAD"))).length).toBe(1)
  const release = await lockTables(database.env.DATABASE_URL, promptTables)
  const rows: Array<{ readonly name: string; readonly socket: Socket; readonly clientPort: number }> = []
  const run = async (state: string, kind: string, ending: string) => {
    const [before, line, lines] = kinds[kind]!
    const socket = await open(port)
    rows.push({ name: `${ending} ${state}, ${kind}`, socket, clientPort: socket.localPort! })
    socket.write(before + states[state]!(line, lines))
    if (state === "after the response") await waitForBytesOrEnd(socket)
    else await setTimeout(50)
    socket.pause()
    endings[ending]!(socket)
  }
  try {
    await Promise.all(
      Object.keys(states).flatMap((state) =>
        Object.keys(kinds).flatMap((kind) => Object.keys(endings).map((ending) => run(state, kind, ending)))
      )
    )
    const listLeft = async () => {
      expect((await exchange(port, rawRequest("/healthz"))).status).toBe(200)
      const held = findHeldConnections(port)
      return rows.filter(({ clientPort }) => held.has(clientPort)).map(({ name }) => name)
    }
    await expect.poll(listLeft, { interval: 100 }).toEqual([])
    await expect.poll(() => findHeldConnections(port).size).toBe(0)
  } finally {
    await release()
    for (const { socket } of rows) socket.destroy()
  }
  await stop()
})

describe("the limits of a connection", () => {
  let usual: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    usual = await start()
  })
  afterAll(() => usual?.stop())

  it("a client that sends more bytes after an invalid request gets the 400 response", async () => {
    const { port } = usual
    for (let round = 0; round < 20; round++) {
      const responses = await exchangeAll(port, `GARBAGE\r\n\r\n${"x".repeat(300_000)}`)
      expect(responses.map(({ status }) => status)).toEqual([400])
    }
  })

  it("a client that reads slowly without a long pause gets complete responses", async () => {
    const { port, stop } = await start({ timeout: 1_500 })
    const socket = await open(port)
    socket.write(pipeline(document, 90) + rawRequest(document))
    let [bytes, pauses] = [0, 0]
    for await (const chunk of socket) {
      bytes += chunk.length
      // In total, the pauses last longer than the limit.
      if (bytes > pauses * 500_000) await setTimeout(100, pauses++)
    }
    socket.destroy()
    expect(bytes).toBeGreaterThan(90 * 200_000)
    expect(pauses).toBeGreaterThan(30)
    await stop()
  })

  it("the time limits of a connection do not end a request that waits for a change, but close a connection with an unread response", async () => {
    const { port, stop } = await start({ ...shortLimits, timeout: 1_000 })
    onTestFinished(async () => expect(await stop()).toBe(0))
    const makeWait = async (path: string, seconds: number) => {
      const { etag } = (await read(`http://127.0.0.1:${port}${path}`, own.key.plaintext)).headers
      const lines = [authorization, `If-None-Match: ${etag}`, `Prefer: wait=${seconds}`]
      return rawRequest(path, lines).replace("Connection: close\r\n", "")
    }
    // The service holds no request before the change feed is up.
    const wait = async () => getHeader(await exchange(port, await makeWait(target, 2)), "preference-applied")
    await expect.poll(wait).toBe("wait=2")
    const socket = (await open(port)).pause()
    onTestFinished(() => void socket.destroy())
    socket.write(await makeWait(`${target}/versions`, 50))
    await setTimeout(200)
    const change = () => database.sql("update prompts set title = title || '!' where id = $1", [large.id])
    const release = await lockTables(database.env.DATABASE_URL, "prompt_versions")
    try {
      await change()
      await waitForBlockedQuery(database.sql)
      // This request starts to wait while the service reads the versions for the first request.
      socket.write(await makeWait(`/api/v1/prompts/${large.id}`, 50))
      await setTimeout(1_500)
    } finally {
      await release()
    }
    expect(findHeldConnections(port)).toContain(socket.localPort)
    await change()
    await expect.poll(() => findHeldConnections(port)).not.toContain(socket.localPort)
  })

  it("unread responses of one workspace use at most 64 MiB of memory; further reads of large prompts get 503 until clients disconnect", async () => {
    const { port } = usual
    const request = rawRequest(`/api/v1/prompts/${large.id}`, [authorization])
    const otherAuthorization = `Authorization: Bearer ${other.key.plaintext}`
    const otherRequest = rawRequest(`/api/v1/prompts/${otherLarge.id}`, [otherAuthorization])
    const readStatus = async (of: string, from = port) => (await exchangeAll(from, of))[0]?.status
    const stalled: Array<Socket> = []
    while ((await readStatus(request)) === 200) {
      const socket = await open(port)
      stalled.push(socket.pause())
      socket.write(request)
      await expect.poll(() => socket.bytesRead).toBeGreaterThan(1_000)
    }
    expect([stalled.length, await readStatus(request)]).toEqual([10, 503])
    expect(await readStatus(otherRequest)).toBe(200)
    for (const socket of stalled) socket.destroy()
    await expect.poll(() => readStatus(request)).toBe(200)
    const full = await start({ maxUnsentBytes: 0 })
    expect(await readStatus(rawRequest(target, [authorization]), full.port)).toBe(200)
    await full.stop()
    // Responses to clients that have disconnected use no memory.
    const release = await lockTables(database.env.DATABASE_URL, "prompts")
    const leaving = await Promise.all(stalled.map(() => open(port)))
    for (const socket of leaving) socket.write(request)
    await waitForBlockedQuery(database.sql)
    for (const socket of leaving) socket.destroy()
    await setTimeout(100)
    await release()
    await expect.poll(() => readStatus(request)).toBe(200)
  })

  it("the service reads at most 512 KiB of a body that no endpoint uses, sends the response and closes the connection", async () => {
    const { port, output } = usual
    const listReads = () => [...output().matchAll(/read (\d+) bytes/g)].map(([, bytes]) => Number(bytes))
    const before = listReads().length
    const head = "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    const responses = await exchangeAll(port, head + "1\r\nx\r\n".repeat(500_000))
    const ends = responses.map((response) => [response.status, getHeader(response, "connection")])
    expect(ends).toEqual([[401, "close"]])
    await expect.poll(() => listReads().length).toBe(before + 1)
    expect(listReads().at(-1)).toBeLessThan(512 * 1024)
  })

  it("the service closes a connection with more than 100 in-flight requests", async () => {
    const { port } = usual
    expect((await exchangeAll(port, pipeline("/healthz", 101))).length).toBeLessThan(101)
    expect((await exchangeAll(port, pipeline("/healthz", 99) + rawRequest("/healthz"))).length).toBe(100)
  })

  it("at the connection limit, the service closes the newest connection", async () => {
    const { port, stop } = await start({ maxConnections: 5, keepAliveTimeout: 100 })
    await expect.poll(() => findHeldConnections(port).size).toBe(0)
    const sockets: Array<Socket> = []
    while (sockets.length < 5) sockets.push(await open(port))
    expect(await exchangeAll(port, rawRequest("/healthz"))).toEqual([])
    sockets[0]!.write(pipeline("/healthz", 1))
    const [response] = (await once(sockets[0]!, "data")) as [Buffer]
    expect(response.toString()).toMatch(/^HTTP\/1\.1 200 OK/)
    sockets[1]!.destroy()
    await expect.poll(async () => (await exchangeAll(port, rawRequest("/healthz"))).length).toBe(1)
    for (const socket of sockets) socket.destroy()
    await stop()
  })
})
