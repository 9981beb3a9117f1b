import { describe, expect, it, vi } from "vitest"
import { AbortError, TimeoutError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  flush,
  makeScriptedClient,
  neverResponds,
  ok,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  useFakeTime
} from "./support.ts"

useFakeTime()

describe("the timeout", () => {
  it.each([
    [undefined, undefined, 30_000],
    [5_000, undefined, 5_000],
    [5_000, 70, 70]
  ])(
    "with the timeout %s of the client and %s of the call, an attempt without a response is aborted after %i ms",
    async (timeout, ofCall, took) => {
      const { client, requests, log } = makeScriptedClient([neverResponds], { timeout })
      const error = new TimeoutError(`No result within ${took} ms`)
      expect(await settle(client.prompts.get("p", { timeout: ofCall }))).toEqual({ error, took })
      expect([requests.length, requests[0]!.signal.aborted]).toEqual([1, true])
      expect(log).toMatchObject([["warn", "GET /api/v1/prompts/p without a response", { duration: took }]])
    }
  )

  it("a call times out when fetch ignores its signal, and a late response starts no further request", async () => {
    const response = Promise.withResolvers<Response>()
    const { client, requests } = makeScriptedClient([() => response.promise])
    const outcome = await settle(client.prompts.get("p"))
    expect(outcome).toMatchObject({ error: { name: "TimeoutError" }, took: 30_000 })
    response.resolve(serviceUnavailable())
    await advance(60_000)
    expect(requests).toHaveLength(1)
  })

  it("the timeout covers all attempts and the delays between the attempts", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { client, requests } = makeScriptedClient([serviceUnavailable, neverResponds])
    const outcome = await settle(client.prompts.get("p", { timeout: 1_000 }))
    expect(outcome).toMatchObject({ error: { name: "TimeoutError" }, took: 1_000 })
    expect(requests).toHaveLength(2)
    // The third attempt would come 750 ms after the first.
    const short = makeScriptedClient([serviceUnavailable])
    const shortOutcome = await settle(short.client.prompts.get("p", { timeout: 700 }))
    expect(shortOutcome).toMatchObject({ error: { status: 503 }, took: 250 })
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
      const call = client.prompts.get("p", { signal: controller.signal })
      await flush()
      controller.abort("why not")
      const error = new AbortError("The call was aborted", { cause: "why not" })
      expect(await settle(call)).toEqual({ error, took: 0 })
      await advance(60_000)
      expect(requests).toHaveLength(1)
      expect(vi.getTimerCount()).toBe(0)
    }
  )

  it("an abort is not logged as a warning", async () => {
    const { client, log } = makeScriptedClient([neverResponds])
    const controller = new AbortController()
    const call = client.prompts.get("p", { signal: controller.signal })
    await flush()
    controller.abort()
    await captureError(call)
    expect(log).toMatchObject([["debug", "GET /api/v1/prompts/p without a response", {}]])
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
