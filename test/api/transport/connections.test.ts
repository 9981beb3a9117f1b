import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { makeTenant, prompt } from "../../support/archives.ts"
import type { ConnectionLimits } from "../../../src/adapters/inbound/http/transport/ConnectionLimits.ts"
import { lockTables, promptTables } from "../../support/database/locks.ts"
import { freePort } from "../../support/ports.ts"
import { exchange, exchangeAll, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { sendGet, sendWait } from "../../support/clients/waits.ts"
import { startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

/** Returns the client port of each connection that a server process still holds open on its port. */
const findHeldConnections = (serverPort: number): ReadonlySet<number> => {
  const local = serverPort.toString(16).toUpperCase().padStart(4, "0")
  const held = new Set<number>()
  for (const line of readFileSync("/proc/net/tcp", "latin1").split("\n")) {
    // Most lines belong to other processes. This check skips most of these lines without parsing.
    if (!line.includes(`:${local} `)) continue
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

const expectServed = async (port: number): Promise<void> => {
  const { status } = await exchange(port, rawRequest("/healthz"))
  expect(status).toBe(200)
}

/** A request whose response has 0.2 MB and needs neither a key nor the database. */
const documentRequest = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"

/** Waits until the OpenAPI document is generated. The service generates the document for the first request. */
const generateDocument = (port: number): Promise<void> =>
  expect
    .poll(async () => (await exchangeAll(port, rawRequest("/openapi.json", [], "HEAD"))).length, {
      timeout: 40_000
    })
    .toBe(1)

const stored = prompt()
/**
 * Makes a prompt whose response has 6 MiB, more than the socket buffers of client and server hold. JSON needs 6 bytes
 * for each character of the prompt's content.
 */
const largest = () => prompt({ current_content: "\u0001".repeat(1024 * 1024) })
const large = largest()
const otherLarge = largest()
const own = makeTenant({ prompts: [stored, large] })
const other = makeTenant({ prompts: [otherLarge] })
const authorization = `Authorization: Bearer ${own.key.plaintext}`

describe("the connections of a service", () => {
  const database = makeTestDatabase([own.archive, other.archive])
  const env = { ...database.env, ...unlimited, LOG_LEVEL: "Warn" }

  describe("the connections of a service with chosen limits", () => {
    const shortLimits = {
      headersTimeout: 1_000,
      requestTimeout: 1_500,
      connectionsCheckingInterval: 100,
      timeout: 3_000,
      keepAliveTimeout: 1_000
    }
    /**
     * The longest time that a connection may stay open after its client has stopped: 5 s for a request that waits for
     * the database, 3 s for a response that is not read, and a tolerance.
     */
    const boundMs = 10_000

    const children = new Set<ChildProcess>()
    afterAll(() => {
      for (const child of children) child.kill("SIGKILL")
    })

    const start = async (limits: Partial<ConnectionLimits> = {}) => {
      const child = spawn(process.execPath, [join(import.meta.dirname, "limitedService.ts")], {
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          ...env,
          LIMITS: JSON.stringify(limits)
        },
        stdio: ["ignore", "pipe", "pipe"]
      })
      children.add(child)
      let output = ""
      child.stderr.on("data", (chunk) => (output += chunk))
      const [line] = (await once(child.stdout, "data")) as [Buffer]
      child.stdout.on("data", (chunk) => (output += chunk))
      return {
        port: Number(line.toString()),
        output: () => output,
        stop: async () => {
          child.kill("SIGTERM")
          const [code] = await once(child, "exit")
          if (code !== 0) throw new Error(`The program exited with ${code}: ${output}`)
        }
      }
    }

    /**
     * The state of a request at the time when its client stops: the bytes sent so far, and whether the client has read
     * a response.
     */
    const states: Readonly<Record<string, (line: string, lines: string) => [bytes: string, reads: boolean]>> =
      {
        "before the head": () => ["", false],
        "in the head": (line, lines) => [`${line} HTTP/1.1\r\nHost: a\r\n${lines}X: `, false],
        "in the body": (line, lines) => [
          `${line.replace("GET", "POST")} HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n${lines}\r\n1234`,
          false
        ],
        "while the request waits for the database": (line, lines) => [
          `${line.replace("/docs", `/api/v1/prompts/${stored.id}`)} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n${lines}\r\n`,
          false
        ],
        "while the response is sent": (line, lines) => [
          `${documentRequest.repeat(80)}${line} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`,
          false
        ],
        "after the response": (line, lines) => [
          `${line.replace("/docs", "/healthz")} HTTP/1.1\r\nHost: a\r\n${lines}\r\n`,
          true
        ]
      }
    const kinds: Readonly<Record<string, readonly [before: string, line: string, lines: string]>> = {
      plain: ["", "GET /docs", ""],
      pipelined: ["GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3), "GET /docs", ""],
      CONNECT: ["", "CONNECT a:1", ""],
      "pipelined CONNECT": ["GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1", ""],
      Upgrade: ["", "GET /docs", "Connection: Upgrade\r\nUpgrade: websocket\r\n"],
      Expect: ["", "GET /docs", "Expect: 100-continue\r\n"],
      "unknown Expect": ["", "GET /docs", "Expect: a-miracle\r\n"]
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

    // This test locks tables that the other tests read, so it does not run concurrently with them.
    it("every connection ends within 10 s, regardless of how and when its client stops", async () => {
      const { port, stop } = await start(shortLimits)
      await generateDocument(port)
      const release = await lockTables(env.DATABASE_URL, promptTables)
      try {
        const rows: Array<{ readonly name: string; readonly socket: Socket; readonly clientPort: number }> =
          []
        const run = async (name: string, bytes: string, reads: boolean, end: (socket: Socket) => void) => {
          const socket = await open(port)
          rows.push({ name, socket, clientPort: socket.localPort! })
          socket.write(bytes)
          if (reads) await waitForBytesOrEnd(socket)
          else await setTimeout(50)
          socket.pause()
          end(socket)
        }
        for (let round = 0; round < 2; round++) {
          await Promise.all(
            Object.entries(states).flatMap(([state, request]) =>
              Object.entries(kinds).flatMap(([kind, [before, line, lines]]) =>
                Object.entries(endings).map(([ending, end]) => {
                  const [bytes, reads] = request(line, lines)
                  return run(`${ending} ${state}, ${kind}`, before + bytes, reads, end)
                })
              )
            )
          )
          await expectServed(port)
        }
        expect(rows.length).toBe(2 * 6 * 7 * 4)
        const started = performance.now()
        const left = () => {
          const held = findHeldConnections(port)
          return rows.filter(({ clientPort }) => held.has(clientPort)).map(({ name }) => name)
        }
        while (left().length > 0 && performance.now() - started < boundMs) {
          await expectServed(port)
          await setTimeout(100)
        }
        expect(left()).toEqual([])
        await expect.poll(() => findHeldConnections(port).size).toBe(0)
        for (const { socket } of rows) socket.destroy()
      } finally {
        await release()
      }
      await stop()
    }, 60_000)

    it.concurrent("a client that sends more bytes after an invalid request gets the 400 response", async () => {
      const { port, stop } = await start()
      for (let round = 0; round < 20; round++) {
        const responses = exchangeAll(port, `GARBAGE\r\n\r\n${"x".repeat(300_000)}`)
        expect((await responses).map(({ status }) => status)).toEqual([400])
      }
      await stop()
    })

    it.concurrent("a client that reads slowly without a long pause gets complete responses", async () => {
      const { port, stop } = await start({ timeout: 3_000 })
      await generateDocument(port)
      const socket = await open(port)
      socket.write(documentRequest.repeat(90) + rawRequest("/openapi.json"))
      let bytes = 0
      const started = performance.now()
      for await (const chunk of socket) {
        bytes += chunk.length
        // Reads about 4 MB/s, with a short pause between chunks. All responses together take several seconds.
        if (performance.now() - started < bytes / 4_000)
          await setTimeout(bytes / 4_000 - (performance.now() - started))
      }
      expect(bytes).toBeGreaterThan(90 * 200_000)
      expect(performance.now() - started).toBeGreaterThan(3_500)
      await stop()
    })

    it.concurrent("a request that waits for a change waits longer than every time limit of its connection", async ({
      expect
    }) => {
      const { port, stop } = await start({
        ...shortLimits,
        headersTimeout: 400,
        requestTimeout: 500,
        timeout: 300
      })
      const target = `/api/v1/prompts/${stored.id}`
      const { headers } = await sendGet({ port, target, key: own.key.plaintext }).response
      const send = () =>
        sendWait({ port, target, key: own.key.plaintext, etag: headers.etag!, wait: 1 }).response
      // No request waits before the change feed is up.
      await expect
        .poll(async () => (await send()).headers["preference-applied"], { timeout: boundMs })
        .toBe("wait=1")
      await stop()
    })

    it.concurrent("unread responses of one workspace do not prevent large responses to other workspaces", async ({
      expect
    }) => {
      const { port, stop } = await start({ maxUnsentBytes: 20_000_000 })
      try {
        const request = rawRequest(`/api/v1/prompts/${large.id}`, [authorization])
        const otherRequest = rawRequest(`/api/v1/prompts/${otherLarge.id}`, [
          `Authorization: Bearer ${other.key.plaintext}`
        ])
        const readStatus = async (of: string) => (await exchangeAll(port, of, 30_000))[0]?.status
        await expect.poll(() => readStatus(request), { timeout: 30_000 }).toBe(200)
        const stalled = await open(port)
        stalled.pause()
        stalled.write(request)
        await expect.poll(() => stalled.bytesRead, { timeout: 5_000 }).toBeGreaterThan(1_000)
        expect(await readStatus(request)).toBe(503)
        expect(await readStatus(otherRequest)).toBe(200)
        stalled.destroy()
        await expect.poll(() => readStatus(request), { timeout: 30_000 }).toBe(200)
      } finally {
        await stop()
      }
    })

    it.concurrent("the service reads at most the start of a body that no endpoint reads, sends the response and closes the connection", async ({
      expect
    }) => {
      const { port, output, stop } = await start()
      const head = rawRequest("/api/v1/prompts", ["Transfer-Encoding: chunked"]).replace(
        "Connection: close\r\n",
        ""
      )
      // Node's parser runs JavaScript for each of these chunks of one byte.
      const [response, ...others] = await exchangeAll(port, head + "1\r\nx\r\n".repeat(500_000))
      expect([response?.status, getHeader(response!, "connection"), others]).toEqual([401, "close", []])
      await expect.poll(output).toContain("read ")
      expect(Number(/read (\d+) bytes/.exec(output())![1])).toBeLessThan(512 * 1024)
      await stop()
    })

    it.concurrent("a request with a small body that no endpoint reads gets its response, and then the connection closes", async ({
      expect
    }) => {
      const { port, stop } = await start()
      const post = "POST /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
      for (const body of ["abcd", "ab", ""]) {
        const responses = await exchangeAll(port, post + body)
        expect(responses.map((response) => [response.status, getHeader(response, "connection")])).toEqual([
          [405, "close"]
        ])
      }
      await stop()
    })

    it.concurrent("a connection with more than 100 in-flight requests is closed", async ({ expect }) => {
      const { port, stop } = await start()
      const responses = exchangeAll(port, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".repeat(1_000))
      expect((await responses).length).toBeLessThan(100)
      await expectServed(port)
      await stop()
    })

    it.concurrent("at the connection limit, the service closes the newest connection", async ({ expect }) => {
      const { port, stop } = await start({
        maxConnections: 50,
        headersTimeout: 60_000,
        requestTimeout: 60_000
      })
      const sockets: Array<Socket> = []
      while (sockets.length < 50) sockets.push(await open(port))
      expect(await exchangeAll(port, rawRequest("/healthz"))).toEqual([])
      sockets[0]!.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
      const [response] = (await once(sockets[0]!, "data")) as [Buffer]
      expect(response.toString()).toMatch(/^HTTP\/1\.1 200 OK/)
      sockets[1]!.destroy()
      await expect.poll(async () => (await exchangeAll(port, rawRequest("/healthz"))).length).toBe(1)
      for (const socket of sockets) socket.destroy()
      await stop()
    })

    it.concurrent("a service that has drained holds no timer, and its process ends by itself", async () => {
      const { port, stop } = await start()
      const sockets = await Promise.all(Array.from({ length: 5 }, () => open(port)))
      sockets[0]!.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
      sockets[1]!.write(documentRequest.repeat(64))
      sockets[2]!.write("GARBAGE\r\n\r\n")
      sockets[3]!.write("GET /hea")
      await Promise.all(sockets.slice(0, 3).map((socket) => once(socket, "readable")))
      for (const socket of sockets) socket.resume()
      await stop()
    })
  })

  describe("the connections of a service with the default limits", () => {
    it.concurrent("the metrics server survives connections that are reset after CONNECT, and closes connections that pipeline requests", async () => {
      const metricsPort = await freePort()
      const service = await startService({ ...env, METRICS_PORT: String(metricsPort) })
      const get = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
      for (let i = 0; i < 60; i++) {
        const socket = await open(metricsPort)
        socket.write(`${i % 2 === 0 ? get : ""}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`)
        await setTimeout(i % 7)
        socket.resetAndDestroy()
      }
      const flood = connect(metricsPort, "127.0.0.1", () => flood.write(get.repeat(1_000)))
      flood.on("error", () => {}).resume()
      await new Promise((resolve) => flood.once("close", resolve))
      for (let i = 0; i < 3; i++) {
        const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`)
        expect([
          response.status,
          (await response.text()).includes("prompt_retrieval_http_requests_total")
        ]).toEqual([200, true])
      }
      expect(await service.stop()).toBe(0)
    })
  })
})
