import { gzipSync } from "node:zlib"
import { beforeEach, expect, it, vi } from "vitest"
import { ConnectionError, PromptClient, TimeoutError } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { type Handler, serveFake } from "./serveFake.ts"
import { flush, key, useFakeTime } from "./support.ts"

// These faults occur only on real connections. `Transport.test.ts` covers error responses.

const json = { "content-type": "application/json" }

const stall: Handler = (_, response) => {
  response.writeHead(200, { ...json, "content-length": "100" })
  response.write('{"data":')
}

const resets: Readonly<Record<string, Handler>> = {
  "a reset before the response": ({ socket }) => void socket.resetAndDestroy(),
  "a connection closed in the response's head": ({ socket }) =>
    void socket.end("HTTP/1.1 200 OK\r\ncontent-"),
  "a connection closed in the response's body": (request, response) => {
    stall(request, response)
    response.write("{", () => response.destroy())
  },
  "a response that is not HTTP": ({ socket }) => void socket.end("220 mail.example.com ESMTP\r\n")
}

useFakeTime()

const service = new FakeService({ prompts: [{ name: "p", content: "ä" }] })
/** The queue of faults. Each request removes one fault from the queue. */
let faults: Array<Handler> = []
let requests = 0
let baseUrl: string
beforeEach(async () => {
  faults = []
  requests = 0
  baseUrl = await serveFake(service, (request, response) => {
    requests++
    const fault = faults.shift()
    fault?.(request, response)
    return fault !== undefined
  })
})

/** Reads a prompt without waiting between attempts: each failed attempt advances the fake clock. */
const read = (timeout = 60_000) =>
  new PromptClient({
    apiKey: key,
    baseUrl,
    timeout,
    logger: { warn: () => void flush().then(() => vi.advanceTimersByTime(10_000)) }
  }).prompts.get("p")

it.each(Object.keys(resets))(
  "a call is retried after %s, and rejects with a ConnectionError if every attempt ends in this way",
  async (kind) => {
    faults.push(...Array(5).fill(resets[kind]!))
    await expect(read()).rejects.toBeInstanceOf(ConnectionError)
    expect((await read()).data.current_content).toBe("ä")
    expect(requests).toBe(6)
  }
)

it.each([
  ["before the response", () => {}],
  ["in the response's body", stall]
])("a timeout closes the connection when the service stalls %s", async (_, stall) => {
  const stalled = Promise.withResolvers<void>()
  const closed = Promise.withResolvers<void>()
  faults.push((request, response) => {
    stall(request, response)
    request.socket.once("close", closed.resolve)
    stalled.resolve()
  })
  const call = read(3_000)
  call.catch(() => {})
  await stalled.promise
  await flush()
  vi.advanceTimersByTime(3_000)
  await expect(call).rejects.toEqual(new TimeoutError("No result within 3000 ms"))
  await closed.promise
  expect(requests).toBe(1)
})

it("a call that gets a gzip bomb rejects with an InvalidResponseError without a retry, and closes the connection", async () => {
  // A decompressor concatenates the members of a gzip file, so 256 KiB become 256 MiB.
  const member = gzipSync(Buffer.alloc(2 ** 20, " "))
  const closed = Promise.withResolvers<void>()
  faults.push((request, response) => {
    request.socket.once("close", closed.resolve)
    response.writeHead(200, { ...json, "content-encoding": "gzip" })
    response.end(Buffer.concat(Array(256).fill(member)))
  })
  await expect(read()).rejects.toMatchObject({
    name: "InvalidResponseError",
    message: "Unexpected response: 200 with a body of more than 8 MiB",
    status: 200
  })
  await closed.promise
  expect(requests).toBe(1)
})

it("a call reads a response body of 8 MiB, and rejects if the body is one byte longer", async () => {
  const limit = 8 * 2 ** 20
  // In UTF-8, the letter ä has two bytes.
  for (const size of [limit, limit + 1])
    faults.push(
      (_, response) => void response.writeHead(200, json).end(`{"data":{"title":"ä"}}`.padEnd(size - 1))
    )
  expect((await read()).data.title).toBe("ä")
  await expect(read()).rejects.toThrow(/more than 8 MiB/)
})
