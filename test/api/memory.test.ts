import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { describe, expect, it } from "vitest"
import { makeTenant, prompt } from "../support/archives.ts"
import { exchange, exchangeAll, rawRequest } from "../support/clients/rawHttp.ts"
import { type Service, startService, unlimited } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const MiB = 1024 * 1024

describe("clients that do not read their responses", () => {
  /** The response with this prompt has more than 1 MiB, so the service does not cache the response. */
  const large = prompt({ current_content: "x".repeat(1024 * 1024) })
  const cached = prompt({ current_content: "x".repeat(1_000_000) })
  const small = prompt()
  const tenant = makeTenant({ prompts: [large, cached, small] })
  const authorization = `Authorization: Bearer ${tenant.key.plaintext}`
  const database = makeTestDatabase([tenant.archive])
  const env = { ...database.env, ...unlimited, LOG_LEVEL: "Error" }
  let service: Service
  let sockets: Array<Socket> = []

  const start = async (overrides: Record<string, string> = {}) => {
    service = await startService({ ...env, ...overrides })
  }

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

  /**
   * Returns the peak memory of the service during the next `ms` milliseconds, in bytes. Expects that the service
   * responds to another caller all this time.
   */
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

  it("50 connections that pipeline 66 KB of requests each and read nothing use less than 256 MiB in a process with a heap of 256 MiB", async () => {
    // Limits the young generation, as the container image does. Otherwise, garbage can add about 250 MiB to the peak.
    await start({ NODE_OPTIONS: "--max-old-space-size=256 --max-semi-space-size=16" })
    await exchange(service.port, rawRequest("/openapi.json", [], "HEAD"))
    const before = readResidentBytes()
    const request = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
    await Promise.all(
      Array.from({ length: 50 }, () => open(request.repeat(Math.ceil(66_000 / request.length))))
    )
    const peak = await measurePeakWhileServing(8_000)
    console.log(
      `pipelined and unread: ${Math.round(before / MiB)} MiB before, ${Math.round(peak / MiB)} MiB at most`
    )
    expect(peak - before).toBeLessThan(256 * MiB)
    await stop()
  }, 120_000)

  it.each([
    { name: "200 callers that read nothing of an uncached response of 1 MiB", count: 200, id: large.id },
    { name: "2,000 callers that read nothing of a cached response of 1 MB", count: 2_000, id: cached.id }
  ])(
    "$name use less than 150 MiB, and other callers get responses",
    async ({ name, count, id }) => {
      await start()
      const target = `/api/v1/prompts/${id}`
      await exchange(service.port, rawRequest(target, [authorization]))
      const before = readResidentBytes()
      for (let opened = 0; opened < count; opened += 50)
        await Promise.all(Array.from({ length: 50 }, () => open(rawRequest(target, [authorization]))))
      const peak = await measurePeakWhileServing(6_000)
      console.log(`${name}: ${Math.round(before / MiB)} MiB before, ${Math.round(peak / MiB)} MiB at most`)
      expect(peak - before).toBeLessThan(150 * MiB)
      for (const socket of sockets) socket.destroy()
      // The service sends this large response again once the memory of the closed connections is free.
      await expect
        .poll(async () => (await exchange(service.port, rawRequest(target, [authorization]))).status)
        .toBe(200)
      await stop()
    },
    120_000
  )
})
