import { once } from "node:events"
import { readdirSync } from "node:fs"
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeTenant, prompt } from "../../support/archives.ts"
import { rawRequest } from "../../support/clients/rawHttp.ts"
import { expectBystandersUnaffected, send } from "../../support/clients/requests.ts"
import { type Service, startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

describe("clients that misbehave", () => {
  const large = prompt({ current_content: "x".repeat(400_000) })
  const huge = prompt({ current_content: "x".repeat(1_000_000) })
  const tenant = makeTenant({ prompts: [large, huge] })
  const authorization = `Bearer ${tenant.key.plaintext}`
  const { env } = makeTestDatabase([tenant.archive])
  let service: Service

  beforeAll(async () => {
    service = await startService({ ...env, ...unlimited, LOG_LEVEL: "Warn" })
  })
  afterAll(async () => {
    expect(await service?.stop()).toBe(0)
    // The service must not log a warning for a disconnect or a rejected request.
    expect(service.output()).toBe("")
  })

  const countDescriptors = () => readdirSync(`/proc/${service.process.pid}/fd`).length

  it("clients that send no complete request in 10 s get 408, are disconnected and do not delay other clients", async () => {
    const before = countDescriptors()
    const started = performance.now()
    const received: Array<string> = []
    const closedAfter: Array<number> = []
    const sockets = Array.from({ length: 2_020 }, (_, index) => {
      const socket = connect(service.port, "127.0.0.1")
      received[index] = ""
      socket.setEncoding("latin1").on("data", (text) => (received[index] = received[index]! + text))
      socket.on("error", () => {})
      return socket
    })
    await Promise.all(sockets.map((socket) => once(socket, "connect")))
    const closed = sockets.map(async (socket, index) => {
      await once(socket, "close")
      closedAfter[index] = performance.now() - started
    })
    const dripping = sockets.slice(2_000).map(async (socket) => {
      for (const byte of rawRequest("/healthz")) {
        if (!socket.writable) return
        socket.write(byte)
        await setTimeout(1_000)
      }
    })
    await expectBystandersUnaffected(service)
    expect((await send(service, "/api/v1/prompts", authorization)).status).toBe(200)
    await Promise.all([...closed, ...dripping])
    const responses = new Set(received.map((text) => `${text.slice(0, 12)} ${text.split("\r\n\r\n")[1]}`))
    expect([...responses]).toEqual([
      'HTTP/1.1 408 {"error":{"code":"REQUEST_TIMEOUT","message":"Request timeout"}}'
    ])
    expect(Math.max(...closedAfter)).toBeLessThan(14_000)
    expect(Math.min(...closedAfter)).toBeGreaterThan(9_000)
    await expect.poll(countDescriptors, { timeout: 8_000 }).toBeLessThan(before + 20)
  }, 60_000)
})
