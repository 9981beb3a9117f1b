import { once } from "node:events"
import { connect } from "node:net"
import { expect, it } from "vitest"
import { makeTenant } from "../../support/archives.ts"
import { rawRequest } from "../../support/clients/rawHttp.ts"
import { expectBystandersUnaffected, send } from "../../support/clients/requests.ts"
import { startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const tenant = makeTenant()
const { env } = makeTestDatabase([tenant.archive])

it("2,000 clients that send no complete request get 408, are disconnected and do not delay other clients", async () => {
  const service = await startService({ ...env, ...unlimited, LOG_LEVEL: "Warn" })
  const received: Array<string> = []
  const sockets = Array.from({ length: 2_000 }, (_, index) => {
    const socket = connect(service.port, "127.0.0.1").setEncoding("latin1")
    received[index] = ""
    return socket.on("data", (text) => (received[index] = received[index]! + text)).on("error", () => {})
  })
  await Promise.all(sockets.map((socket) => once(socket, "connect")))
  const closed = sockets.map((socket) => once(socket, "close"))
  // Some clients send one byte per second.
  const bytes = rawRequest("/healthz")[Symbol.iterator]()
  const dripping = setInterval(() => {
    const { value } = bytes.next()
    for (const socket of sockets.slice(0, 20)) if (socket.writable) socket.write(value ?? "")
  }, 1_000)
  await expectBystandersUnaffected(service)
  expect((await send(service, "/api/v1/prompts", `Bearer ${tenant.key.plaintext}`)).status).toBe(200)
  // The other clients got their responses first.
  expect(new Set(received)).toEqual(new Set([""]))
  await Promise.all(closed)
  clearInterval(dripping)
  const responses = received.map((text) => `${text.slice(0, 12)} ${text.split("\r\n\r\n")[1]}`)
  expect(new Set(responses)).toEqual(
    new Set(['HTTP/1.1 408 {"error":{"code":"REQUEST_TIMEOUT","message":"Request timeout"}}'])
  )
  expect(await service.stop()).toBe(0)
  // The service must not log a warning for a disconnect or a rejected request.
  expect(service.output()).toBe("")
})
