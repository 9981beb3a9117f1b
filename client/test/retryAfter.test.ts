import { describe, expect, it, vi } from "vitest"
import { RateLimitedError } from "../src/index.ts"
import {
  advance,
  captureError,
  errorResponse,
  flush,
  useFakeTime,
  envelope,
  makeScriptedClient,
  ok,
  rateLimited,
  settle,
  promptId,
  toId
} from "./support.ts"

useFakeTime()

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["1", 1_000],
    ["17", 17_000],
    ["60", 60_000],
    // The client waits for at most one minute.
    ["86400", 60_000],
    ["999999999999999", 60_000]
  ])("Retry-After: %s delays the retry of a 429 and of a 503 by %i ms", async (value, took) => {
    for (const status of [429, 503]) {
      const { client, requests } = makeScriptedClient([
        () => errorResponse(status, "CODE", "Later", { "retry-after": value }),
        ok
      ])
      const call = client.prompts.get(promptId, { timeout: took + 1 })
      expect(await settle(call)).toEqual({ value: envelope, took })
      expect(requests).toHaveLength(2)
    }
  })

  it.each(["", "soon", "Thu, 01 Jan 2026 00:00:09 GMT", "-5", "1.5", "2026-01-01", "0x10", "1e3"])(
    "a Retry-After that is empty or contains other characters than digits is ignored: %j",
    async (value) => {
      vi.spyOn(Math, "random").mockReturnValue(0)
      const { client } = makeScriptedClient([
        () => errorResponse(503, "CODE", "Later", { "retry-after": value }),
        ok
      ])
      expect(await settle(client.prompts.get(promptId))).toEqual({ value: envelope, took: 250 })
      const once = makeScriptedClient([() => errorResponse(503, "CODE", "Later", { "retry-after": value })], {
        maxRetries: 0
      })
      expect(await captureError(once.client.prompts.get(promptId))).toMatchObject({ retryAfter: undefined })
    }
  )

  it("a Retry-After beyond the timeout makes the call reject immediately with the error of the response", async () => {
    for (const value of ["30", "60", "999999999999999"]) {
      const { client, requests } = makeScriptedClient([() => rateLimited(value)])
      const outcome = await settle(client.prompts.get(promptId))
      expect(outcome).toMatchObject({
        error: { status: 429, code: "RATE_LIMITED", requestId: "req-429", retryAfter: Number(value) },
        took: 0
      })
      expect(requests).toHaveLength(1)
    }
  })
})

describe("the pause after a 429", () => {
  it("a 429 delays every call of the client, but no call of another client", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("10"), ok])
    const other = makeScriptedClient([ok])
    const all = [client.prompts.get(toId("a"))]
    await flush()
    all.push(client.prompts.get(toId("b")), client.prompts.get(toId("c"), { maxRetries: 0 }))
    expect(await settle(other.client.prompts.get(toId("d")))).toEqual({ value: envelope, took: 0 })
    await advance(9_999)
    expect(requests).toHaveLength(1)
    await advance(1)
    expect(await Promise.all(all)).toEqual([envelope, envelope, envelope])
    expect(requests.map(({ url }) => url.slice(-1))).toEqual(["a", "a", "b", "c"])
  })

  it("a call that would time out during the pause rejects immediately, without a request", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("50"), ok])
    const first = await captureError(client.prompts.get(toId("a")))
    expect(first).toBeInstanceOf(RateLimitedError)
    await advance(7_500)
    const outcome = await settle(client.prompts.get(toId("b")))
    const error = (outcome as { error: RateLimitedError }).error
    expect(error).toBeInstanceOf(RateLimitedError)
    expect(error).not.toBe(first)
    expect({ ...error, message: error.message, took: outcome.took }).toEqual({
      status: 429,
      code: "RATE_LIMITED",
      message: "Rate limit exceeded; no request was sent",
      requestId: "req-429",
      retryAfter: 43,
      took: 0
    })
    expect(requests).toHaveLength(1)
    await advance(42_500)
    expect(await settle(client.prompts.get(toId("b")))).toEqual({ value: envelope, took: 0 })
  })
})
