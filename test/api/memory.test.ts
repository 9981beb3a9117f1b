import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { afterEach, beforeEach, expect, it } from "vitest"
import { makeTenant, prompt } from "../support/archives.ts"
import { exchange, rawRequest } from "../support/clients/rawHttp.ts"
import { type Service, startService, unlimited } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

/** The response with this prompt has more than 1 MiB, so the service does not cache the response. */
const large = prompt({ current_content: "x".repeat(1024 * 1024) })
const tenant = makeTenant({ prompts: [large] })
const database = makeTestDatabase([tenant.archive])
let service: Service
let sockets: Array<Socket> = []

beforeEach(async () => {
  // Limits the heap, as the container image does.
  const NODE_OPTIONS = "--max-old-space-size=256 --max-semi-space-size=16"
  service = await startService({ ...database.env, ...unlimited, LOG_LEVEL: "Error", NODE_OPTIONS })
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  expect(await service.stop()).toBe(0)
  expect(service.output()).toBe("")
})

const readResidentMiB = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.process.pid}/status`, "latin1"))![1]) / 1024

const open = async (request: string): Promise<void> => {
  const socket = connect(service.port, "127.0.0.1")
  sockets.push(socket)
  socket.on("error", () => {}).pause()
  await once(socket, "connect")
  socket.write(request)
}

const document = "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
const read = rawRequest(`/api/v1/prompts/${large.id}`, [`Authorization: Bearer ${tenant.key.plaintext}`])

it.each([
  ["50 callers that pipeline 66 KB of requests", 256, 50, document.repeat(66_000 / document.length)],
  ["200 callers of an uncached response of 1 MiB", 150, 200, read]
])(
  "%s and read nothing use less than %i MiB, and other callers get responses",
  async (_, maxMiB, count, request) => {
    for (const warmUp of [read, rawRequest("/openapi.json", [], "HEAD")]) await exchange(service.port, warmUp)
    const before = readResidentMiB()
    for (let opened = 0; opened < count; opened += 50)
      await Promise.all(Array.from({ length: 50 }, () => open(request)))
    let peak = 0
    // While the service sends these responses, it handles what has arrived from the other callers.
    for (let n = 0; n < 100; n++) {
      expect((await exchange(service.port, rawRequest("/nowhere"))).status).toBe(404)
      peak = Math.max(peak, readResidentMiB())
    }
    expect(peak - before).toBeLessThan(maxMiB)
    for (const socket of sockets) socket.destroy()
    // The service sends this response again once the memory of the closed connections is free.
    await expect.poll(async () => (await exchange(service.port, read)).status).toBe(200)
  }
)
