import { once } from "node:events"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { expect, it } from "vitest"
import { rawRequest } from "../../support/clients/rawHttp.ts"
import { expectBystandersUnaffected } from "../../support/clients/requests.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { startService, unlimited } from "../../support/services/startService.ts"

const { env } = makeTestDatabase()

it("500 clients that send no complete request get a 408 and are disconnected, and do not delay other clients", async () => {
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
  // The other clients have their responses before these clients get a 408.
  expect(sockets.filter(({ bytesRead }) => bytesRead > 0)).toEqual([])
  const responses = await closed
  clearInterval(dripping)
  const body = '{"error":{"code":"REQUEST_TIMEOUT","message":"Request timeout"}}'
  for (const response of responses)
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 408 [^]*\r\n\r\n${body}$`))
  expect(await service.stop()).toBe(0)
  // The service must not log a warning for a disconnect or a rejected request.
  expect(service.output()).toBe("")
})
