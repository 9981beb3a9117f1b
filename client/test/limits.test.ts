import { describe, expect, it, vi } from "vitest"
import { AbortError, TimeoutError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  flush,
  useFakeTime,
  makeScriptedClient,
  ok,
  neverResponds,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  promptId
} from "./support.ts"

useFakeTime()

describe("the timeout", () => {
  it.each([
    [undefined, undefined, 30_000],
    [5_000, undefined, 5_000],
    [5_000, 70, 70]
  ])(
    "with the timeout %s of the client and %s of the call, an attempt without a response is aborted after %i ms",
    async (client, call, took) => {
      const { client: stalled, requests, log } = makeScriptedClient([neverResponds], { timeout: client })
      expect(await settle(stalled.prompts.get(promptId, { timeout: call }))).toEqual({
        error: new TimeoutError(`No result within ${took} ms`),
        took
      })
      expect(requests).toHaveLength(1)
      expect(requests[0]!.signal.aborted).toBe(true)
      expect(log).toEqual([
        [
          "warn",
          "GET /api/v1/prompts/p without a response",
          {
            method: "GET",
            path: "/api/v1/prompts/p",
            status: undefined,
            duration: took,
            requestId: undefined,
            attempt: 1
          }
        ]
      ])
    }
  )

  it("a call times out even if fetch ignores its signal, and a late error response is not retried", async () => {
    const response = Promise.withResolvers<Response>()
    const { client, requests } = makeScriptedClient([() => response.promise])
    expect(await settle(client.prompts.get(promptId))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 30_000
    })
    response.resolve(serviceUnavailable())
    await advance(60_000)
    expect(requests).toHaveLength(1)
  })

  it("the timeout covers all attempts and the delays between the attempts", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { client, requests } = makeScriptedClient([serviceUnavailable, neverResponds])
    expect(await settle(client.prompts.get(promptId, { timeout: 1_000 }))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 1_000
    })
    expect(requests).toHaveLength(2)
    // The third attempt would come 750 ms after the first.
    const short = makeScriptedClient([serviceUnavailable])
    expect(await settle(short.client.prompts.get(promptId, { timeout: 700 }))).toMatchObject({
      error: { status: 503 },
      took: 250
    })
    expect(short.requests).toHaveLength(2)
  })
})

describe("a signal", () => {
  const aborts: Record<string, Responder> = {
    "before the response": neverResponds,
    "while the body is read": ({ signal }) =>
      new Response(
        new ReadableStream({
          start: (stream) => signal.addEventListener("abort", () => stream.error(signal.reason))
        }),
        { headers: { "content-type": "application/json" } }
      ),
    "while waiting to retry": () => rateLimited("20"),
    "when fetch ignores its signal": () => new Promise(() => {})
  }

  it.each(Object.keys(aborts))(
    "aborting the signal rejects the call immediately with an AbortError: %s",
    async (kind) => {
      const { client, requests } = makeScriptedClient([aborts[kind]!])
      const controller = new AbortController()
      const call = client.prompts.get(promptId, { signal: controller.signal })
      await flush()
      expect(requests).toHaveLength(1)
      controller.abort("why not")
      expect(await settle(call)).toEqual({
        error: new AbortError("The call was aborted", { cause: "why not" }),
        took: 0
      })
      await advance(60_000)
      expect(requests).toHaveLength(1)
      expect(vi.getTimerCount()).toBe(0)
    }
  )

  it("an abort is not logged as a warning", async () => {
    const { client, log } = makeScriptedClient([neverResponds])
    const controller = new AbortController()
    const call = client.prompts.get(promptId, { signal: controller.signal })
    await flush()
    controller.abort()
    expect(await captureError(call)).toBeInstanceOf(AbortError)
    await flush()
    expect(log.map(([level, message]) => [level, message])).toEqual([
      ["debug", "GET /api/v1/prompts/p without a response"]
    ])
  })

  it("every method rejects with an AbortError and sends no request if the signal is already aborted", async () => {
    const { client, requests } = makeScriptedClient([ok])
    for (const call of allCalls) {
      expect(await captureError(call(client, { signal: AbortSignal.abort("gone") }))).toEqual(
        new AbortError("The call was aborted", { cause: "gone" })
      )
    }
    expect(requests).toEqual([])
  })
})
