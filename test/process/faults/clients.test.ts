import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { expect, it } from "vitest"
import { makeTenant } from "../../support/archives.ts"
import { rawRequest } from "../../support/clients/rawHttp.ts"
import { expectBystandersUnaffected, send } from "../../support/clients/requests.ts"
import { startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const tenant = makeTenant()
const { env } = makeTestDatabase([tenant.archive])

it("500 clients that send no complete request get 408, are disconnected and do not delay other clients", async () => {
  const service = await startService({ ...env, ...unlimited, LOG_LEVEL: "Warn" })
  const sockets = Array.from({ length: 500 }, () => connect(service.port, "127.0.0.1"))
  const closed = Promise.all(sockets.map(text))
  await Promise.all(sockets.map((socket) => once(socket, "connect")))
  // Some clients send one byte per second.
  const bytes = rawRequest("/healthz")[Symbol.iterator]()
  const dripping = setInterval(() => {
    const { value } = bytes.next()
    for (const socket of sockets.slice(0, 20)) if (socket.writable) socket.write(value ?? "")
  }, 1_000)
  await expectBystandersUnaffected(service)
  expect((await send(service, "/api/v1/prompts", `Bearer ${tenant.key.plaintext}`)).status).toBe(200)
  // The other clients got their responses first.
  expect(new Set(sockets.map(({ bytesRead }) => bytesRead))).toEqual(new Set([0]))
  const responses = await closed
  clearInterval(dripping)
  expect(
    new Set(responses.map((response) => `${response.slice(0, 12)} ${response.split("\r\n\r\n")[1]}`))
  ).toEqual(new Set(['HTTP/1.1 408 {"error":{"code":"REQUEST_TIMEOUT","message":"Request timeout"}}']))
  expect(await service.stop()).toBe(0)
  // The service must not log a warning for a disconnect or a rejected request.
  expect(service.output()).toBe("")
})
