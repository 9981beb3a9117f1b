import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { encodeBody } from "../../src/adapters/inbound/http/response/Representation.ts"
import { archive, key, prompt, user, workspace } from "../support/archives.ts"
import { connectTo, makeResources, postgres } from "../support/database.ts"
import { exchange, exchangeAll, rawRequest } from "../support/rawHttp.ts"
import { type Service, sourceProgram, startService } from "../support/service.ts"

const MiB = 1024 * 1024

setFlagsFromString("--expose-gc")
const collectGarbage: () => void = runInNewContext("gc")
/** Returns the least of several measurements, because V8 frees array buffers in the background. */
const measureArrayBuffers = async (): Promise<number> => {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 20; i++) {
    collectGarbage()
    await setTimeout(20)
    least = Math.min(least, process.memoryUsage().arrayBuffers)
  }
  return least
}

it("cached response bodies occupy at most 1.2 times their size in memory", async () => {
  const envelope = { data: "x".repeat(1_500) }
  const text = JSON.stringify(envelope)
  const before = await measureArrayBuffers()
  const bodies = Array.from({ length: 2_000 }, () => {
    // Most bodies that are encoded in between are not cached.
    for (let i = 0; i < 40; i++) Buffer.from(text)
    return encodeBody(envelope).body
  })
  const held = (await measureArrayBuffers()) - before
  const accounted = bodies.reduce((sum, { length }) => sum + length, 0)
  console.log(`${accounted} bytes of bodies hold ${held}`)
  expect(held / accounted).toBeLessThan(1.2)
})

it("encodeBody encodes an envelope as JSON in UTF-8", () => {
  for (const data of ["", { data: "x" }, "\u00e4 \u{1f600} \ud800", "y".repeat(100_000)])
    expect(encodeBody({ data }).body).toEqual(Buffer.from(JSON.stringify({ data })))
})

describe("clients that read slowly or not at all", () => {
  const resources = makeResources()
  const owner = user()
  const home = workspace()
  const ownKey = key(home.id, owner)
  const authorization = `Authorization: Bearer ${ownKey.plaintext}`
  const large = prompt({ current_content: "x".repeat(7_000_000) })
  const small = prompt()
  let env: Record<string, string>
  let service: Service
  let sockets: Array<Socket> = []

  const start = async (overrides: Record<string, string> = {}) => {
    service = await startService({ ...env, ...overrides }, "/readyz", [], sourceProgram)
  }
  beforeAll(async () => {
    env = {
      ...(await resources.acquire(postgres.acquire)),
      RATE_LIMIT_PER_KEY: "1000000",
      RATE_LIMIT_PER_PROCESS: "1000000",
      LOG_LEVEL: "Error"
    }
    await start()
    const { importArchive } = await resources.acquire(connectTo(env))
    await importArchive(
      archive({ workspace: home, users: [owner], api_keys: [ownKey.stored], prompts: [large, small] })
    )
    await service.stop()
  })
  afterAll(() => resources.release())

  const readResidentBytes = (): number =>
    1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.process.pid}/status`, "latin1"))![1])

  const open = async (request: string): Promise<Socket> => {
    const socket = connect(service.port, "127.0.0.1")
    socket.on("error", () => {})
    await once(socket, "connect")
    socket.pause()
    socket.write(request)
    sockets.push(socket)
    return socket
  }

  /** Returns the peak of the memory within a period, and expects that other callers are always served. */
  const measurePeakWhileServing = async (ms: number): Promise<number> => {
    let peak = 0
    for (const end = performance.now() + ms; performance.now() < end; await setTimeout(50)) {
      const [response] = await exchangeAll(service.port, rawRequest("/nowhere"), 40_000)
      expect(response?.status).toBe(404)
      peak = Math.max(peak, readResidentBytes())
    }
    return peak
  }

  const stop = async () => {
    for (const socket of sockets) socket.destroy()
    sockets = []
    expect(await service.stop()).toBe(0)
    expect(service.output()).toBe("")
  }

  it("150 connections that pipeline 66 KB of requests and read nothing cost less than 256 MiB, in a process with a heap of 256 MiB", async () => {
    // Like `npm start`, limits the young generation: without that, garbage of some 250 MiB adds to the peak at times.
    await start({ NODE_OPTIONS: "--max-old-space-size=256 --max-semi-space-size=16" })
    await exchange(service.port, rawRequest("/docs", [], "HEAD"))
    const before = readResidentBytes()
    const request = "GET /docs HTTP/1.1\r\nHost: a\r\n\r\n"
    await Promise.all(
      Array.from({ length: 150 }, () => open(request.repeat(Math.ceil(66_000 / request.length))))
    )
    const peak = await measurePeakWhileServing(8_000)
    console.log(
      `pipelined and unread: ${Math.round(before / MiB)} MiB before, ${Math.round(peak / MiB)} MiB at most`
    )
    expect(peak - before).toBeLessThan(256 * MiB)
    await stop()
  }, 120_000)

  it("64 slow readers of 7 MB responses cost less than 512 MiB, and responses that do not fit become 503", async () => {
    await start()
    const target = `/api/v1/prompts/${large.id}`
    await exchange(service.port, rawRequest(target, [authorization]))
    const before = readResidentBytes()
    const statuses: Record<string, number> = {}
    let peak = 0
    const readers: Array<Socket> = []
    while (readers.length < 64) {
      const some = Array.from({ length: 8 }, (_, i) =>
        open(rawRequest(`${target}?i=${readers.length + i}`, [authorization]))
      )
      for (const socket of await Promise.all(some)) {
        readers.push(socket)
        await once(socket, "readable")
        const status = String(socket.read(12) ?? "").slice(9)
        statuses[status] = (statuses[status] ?? 0) + 1
        const reading = setInterval(() => socket.read(16_384), 100)
        socket.on("close", () => clearInterval(reading))
      }
      peak = Math.max(peak, readResidentBytes())
    }
    peak = Math.max(peak, await measurePeakWhileServing(3_000))
    const after = readResidentBytes()
    console.log(
      `slow readers: ${Math.round(before / MiB)} MiB before, ${Math.round(peak / MiB)} MiB at most, ${Math.round(after / MiB)} MiB in the end`,
      statuses
    )
    expect(statuses["200"]).toBeGreaterThan(10)
    expect(statuses["503"]).toBeGreaterThan(10)
    expect(Object.keys(statuses).toSorted()).toEqual(["200", "503"])
    expect(peak - before).toBeLessThan(512 * MiB)
    for (const socket of readers) socket.destroy()
    // The memory that they held is free again.
    await expect
      .poll(async () => (await exchange(service.port, rawRequest(target, [authorization]))).status)
      .toBe(200)
    await stop()
  }, 120_000)
})
