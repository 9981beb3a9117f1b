import { once } from "node:events"
import { Agent } from "node:http"
import { connect, createServer } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, expect, it } from "vitest"
import { makeTenant, prompt } from "../../support/archives.ts"
import { read } from "../../support/clients/read.ts"
import { lockTables, promptTables, waitForBlockedQuery } from "../../support/database/locks.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { freePort } from "../../support/network/ports.ts"
import { run, type Service, startService } from "../../support/services/startService.ts"

/** A prompt whose response has 6 MiB, because each character of its content takes 6 bytes in JSON. */
const large = prompt({ current_content: "\u0001".repeat(1024 * 1024) })
const { archive, key } = makeTenant({ prompts: [large] })
const database = makeTestDatabase([archive])

const start = (env: Record<string, string> = {}) => startService({ ...database.env, ...env })

const sendRequest = async (service: Service, path: string, agent = new Agent({ keepAlive: true })) => {
  const { status, headers } = await read(service.url + path, key.plaintext, {}, agent)
  return { status, connection: headers.connection }
}

/** Opens a connection and requests responses of 6 MiB each. The socket buffers cannot contain one of these responses. */
const requestLargeResponses = (service: Service, count: number) => {
  const request = `GET /api/v1/prompts/${large.id} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key.plaintext}\r\n\r\n`
  const socket = connect(service.port, "127.0.0.1", () => socket.write(request.repeat(count)))
  return socket
}

const waitUntilRefusing = (service: Service) =>
  expect.poll(async () => (await sendRequest(service, "/healthz")).status).toBe("ECONNREFUSED")

let release = async () => {}
const lock = async () => {
  release = await lockTables(database.env.DATABASE_URL, promptTables)
}
afterEach(() => release())

it("a service keeps serving after its log pipe closes, and exits with 0 on SIGTERM", async () => {
  for (const LOG_FORMAT of ["json", "pretty"]) {
    const service = await start({ LOG_FORMAT, LOG_LEVEL: "All" })
    service.process.stderr!.destroy()
    for (let i = 0; i < 5; i++) expect((await sendRequest(service, "/api/v1/prompts")).status).toBe(200)
    expect(await service.stop()).toBe(0)
  }
})

it("on SIGTERM, a service returns 503 for /readyz, accepts requests during SHUTDOWN_GRACE, completes in-flight requests and exits with 0", async () => {
  const service = await start({ SHUTDOWN_GRACE: "1 second" })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  expect(await sendRequest(service, "/readyz", agent)).toMatchObject({
    status: 200,
    connection: "keep-alive"
  })
  await lock()
  const stopped = service.stop()
  await expect.poll(async () => (await sendRequest(service, "/readyz", agent)).status).toBe(503)
  expect(await sendRequest(service, "/healthz", agent)).toMatchObject({
    status: 200,
    connection: "keep-alive"
  })
  // The request arrives during SHUTDOWN_GRACE. The lock delays the response until the service refuses connections.
  const inFlight = sendRequest(service, "/api/v1/prompts?per_page=1")
  await waitUntilRefusing(service)
  await release()
  expect(await inFlight).toMatchObject({ status: 200, connection: "close" })
  expect(await stopped).toBe(0)
})

it("on SIGTERM, a service immediately closes connections that are idle, new or in the middle of a request", async () => {
  const service = await start()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  await sendRequest(service, "/healthz", agent)
  const silent = connect(service.port, "127.0.0.1")
  const half = connect(service.port, "127.0.0.1", () =>
    half.write("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /hea")
  )
  await Promise.all([once(silent, "connect"), once(half, "data")])
  expect(await service.stop()).toBe(0)
  expect(service.output()).not.toContain("Connections cut off")
  silent.destroy()
  half.destroy()
})

it("a service exits immediately with 143 on a second SIGTERM, without completing in-flight requests", async () => {
  const service = await start()
  await lock()
  const inFlight = sendRequest(service, "/api/v1/prompts")
  await waitForBlockedQuery(database.sql)
  const stopped = service.stop()
  await waitUntilRefusing(service)
  await new Promise((resolve) => setTimeout(resolve, 300))
  service.process.kill("SIGTERM")
  expect(await stopped).toBe(143)
  expect(service.output()).toContain("prompt-retrieval: stopped by a second signal")
  expect((await inFlight).status).toBe("ECONNRESET")
})

it("a service treats two signals within 250 ms as one signal, because Ctrl+C under npm sends two signals", async () => {
  const service = await start({ SHUTDOWN_GRACE: "1 second" })
  service.process.kill("SIGINT")
  await expect.poll(async () => (await sendRequest(service, "/readyz")).status, { interval: 1 }).toBe(503)
  expect(await service.stop()).toBe(0)
})

it("on SIGTERM, a service sends in-flight responses completely, but disconnects clients that are still reading after 10 s, and exits with 0", async () => {
  const service = await start()
  const [fast, slow] = [requestLargeResponses(service, 2), requestLargeResponses(service, 8)]
  await Promise.all([once(fast, "readable"), once(slow, "readable")])
  // The service must make all responses before SIGTERM, because afterwards it sends one last response per connection.
  const countResponses = () => service.output().split('"route":"/api/v1/prompts/:id"').length - 1
  await expect.poll(countResponses).toBe(10)
  const stopped = service.stop()
  await waitUntilRefusing(service)
  // Reads about 2 MB/s. The responses have 50 MB in total.
  const reading = setInterval(() => slow.read(), 30)
  slow.on("close", () => clearInterval(reading)).on("error", () => {})
  expect((await text(fast)).length).toBeGreaterThan(12_000_000)
  expect(await stopped).toBe(0)
  expect(service.output()).toContain("Connections cut off: not finished within 10 s")
})

it.each([
  ["PORT", "HOST and PORT"],
  ["METRICS_PORT", "METRICS_HOST and METRICS_PORT"]
])("serve exits with 1 and prints one line if the port in %s is in use", async (variable, names) => {
  const port = await freePort()
  const occupant = createServer().listen(port, "127.0.0.1")
  await once(occupant, "listening")
  const env = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none", LOG_LEVEL: "warn", PORT: "0" }
  const result = await run(["serve"], { ...env, [variable]: String(port) })
  occupant.close()
  const stderr = expect.stringMatching(`^prompt-retrieval: cannot listen on ${names}: .* in use .*${port}\n$`)
  expect(result).toEqual({ code: 1, stdout: "", stderr })
})
