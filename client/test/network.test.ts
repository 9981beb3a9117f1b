import { gzipSync } from "node:zlib"
import type { IncomingMessage, ServerResponse } from "node:http"
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest"
import { type ClientOptions, ConnectionError, PromptClient, TimeoutError } from "../src/index.ts"
import { type Fault, type FaultyServer, listen, startFaultyServer } from "./FaultyServer.ts"
import { flush, key, promptId, useFakeTime } from "./support.ts"

/** Faults that occur only on real connections. `Transport.test.ts` covers error responses. */
const resets = {
  "a reset before the response": (request: IncomingMessage) => void request.socket.resetAndDestroy(),
  "a connection closed in the response's head": (request: IncomingMessage) =>
    void request.socket.end("HTTP/1.1 200 OK\r\ncontent-"),
  "a connection closed in the response's body": (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" })
    response.write('{"data":', () => response.destroy())
  },
  "a response that is not HTTP": (request: IncomingMessage) =>
    void request.socket.end("220 mail.example.com ESMTP\r\n")
} satisfies Record<string, Fault>

const stalls = {
  "before the response": () => {},
  "in the response's body": (_: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" })
    response.write('{"data":')
  }
} satisfies Record<string, Fault>

useFakeTime()

let server: FaultyServer
beforeEach(async () => {
  server = await startFaultyServer()
})
afterEach(() => server.close())

/** Creates a client that does not wait between attempts: each failed attempt advances the fake clock. */
const makeImpatientClient = (options: Partial<ClientOptions> = {}) =>
  new PromptClient({
    apiKey: key,
    baseUrl: server.url,
    timeout: 60_000,
    logger: { warn: () => void flush().then(() => vi.advanceTimersByTime(10_000)) },
    ...options
  })

describe("a connection", () => {
  it.each(Object.keys(resets) as Array<keyof typeof resets>)(
    "a call is retried after %s, and rejects with a ConnectionError if every attempt ends in this way",
    async (kind) => {
      server.faults.push(resets[kind], resets[kind])
      const { data } = await makeImpatientClient().prompts.get(promptId)
      expect(data.title).toBe("Support agent")
      server.faults.push(resets[kind], resets[kind], resets[kind])
      const call = makeImpatientClient().prompts.get(promptId)
      await expect(call).rejects.toBeInstanceOf(ConnectionError)
      expect(server.requests).toEqual(Array(6).fill(`/api/v1/prompts/${promptId}`))
    }
  )

  it("a call rejects with a ConnectionError that contains the message of the cause if the connection is refused", async () => {
    const closed = await listen(() => {})
    await closed.close()
    const client = makeImpatientClient({ baseUrl: closed.url, maxRetries: 0 })
    await expect(client.prompts.list()).rejects.toEqual(
      new ConnectionError(
        `No response from ${closed.url}: fetch failed: connect ECONNREFUSED ${new URL(closed.url).host}`
      )
    )
  })

  it.each(Object.keys(stalls) as Array<keyof typeof stalls>)(
    "a timeout closes the connection when the service stalls %s",
    async (kind) => {
      const stalled = Promise.withResolvers<void>()
      const closed = Promise.withResolvers<void>()
      server.faults.push((request, response) => {
        stalls[kind](request, response)
        request.socket.once("close", closed.resolve)
        stalled.resolve()
      })
      const client = new PromptClient({ apiKey: key, baseUrl: server.url, timeout: 3_000 })
      const call = client.prompts.get(promptId)
      call.catch(() => {})
      await stalled.promise
      await flush()
      vi.advanceTimersByTime(3_000)
      await expect(call).rejects.toEqual(new TimeoutError("No result within 3000 ms"))
      await closed.promise
      expect(server.requests).toHaveLength(1)
    }
  )

  it.each([301, 302, 303, 307, 308])(
    "a %i redirect is not followed, so its target never receives the API key",
    async (status) => {
      const received: Array<string | undefined> = []
      const target = await listen((request, response) => {
        received.push(request.headers.authorization)
        response.end()
      })
      onTestFinished(target.close)
      server.faults.push((_, response) => void response.writeHead(status, { location: target.url }).end())
      await expect(makeImpatientClient().prompts.get(promptId)).rejects.toMatchObject({
        name: "InvalidResponseError",
        status
      })
      expect(received).toEqual([])
    }
  )
})

describe("a body of more than 8 MiB", () => {
  const mebibyte = 2 ** 20

  it("a gzip bomb rejects the call with an InvalidResponseError and closes the connection, without a retry", async () => {
    // Decompressors concatenate the members: 256 KiB become 256 MiB.
    const member = gzipSync(Buffer.alloc(mebibyte, " "))
    const closed = Promise.withResolvers<void>()
    server.faults.push((request, response) => {
      request.socket.once("close", closed.resolve)
      response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
      response.end(Buffer.concat(Array(256).fill(member)))
    })
    const call = makeImpatientClient().prompts.get(promptId)
    await expect(call).rejects.toMatchObject({
      name: "InvalidResponseError",
      message: "Unexpected response: 200 with a body of more than 8 MiB",
      status: 200
    })
    await closed.promise
    expect(server.requests).toHaveLength(1)
  })

  it("a body of 8 MiB is read, and one of a byte more is not", async () => {
    const respond = (size: number) =>
      server.faults.push((_, response) => {
        response.writeHead(200, { "content-type": "application/json" })
        response.end(`{"data":{"title":"ä"}}`.padEnd(size - 1))
      })
    respond(8 * mebibyte)
    expect((await makeImpatientClient().prompts.get(promptId)).data.title).toBe("ä")
    respond(8 * mebibyte + 1)
    await expect(makeImpatientClient().prompts.get(promptId)).rejects.toThrow(/more than 8 MiB/)
  })
})
