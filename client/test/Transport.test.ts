import { describe, expect, it, vi } from "vitest"
import { AbortError, type PromptClient, ServiceUnavailableError, TimeoutError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  connectionRefused,
  envelope,
  errorResponse,
  flush,
  jsonResponse,
  key,
  makeScriptedClient,
  neverResponds,
  ok,
  page,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  useFakeTime
} from "./support.ts"

useFakeTime()

describe("a request", () => {
  it("undefined query parameters are omitted, and all other parameters are sorted by name", async () => {
    const meta = { page: 1, per_page: 20, total: 0 }
    const { client, requests } = makeScriptedClient([() => jsonResponse(200, { data: [], meta })])
    const query = async (params: Parameters<PromptClient["prompts"]["list"]>[0]) => {
      await client.prompts.list(params)
      return new URL(requests.at(-1)!.url).search
    }
    for (const params of [undefined, {}, { page: undefined, tag: undefined }])
      expect(await query(params)).toBe("")
    const folder_id = "bab2b473-f525-5bbd-9bfd-ea3313c3418e"
    expect(await query({ type: "few-shot", tag: "a&b =ä", per_page: 5, folder_id, page: 2 })).toBe(
      `?folder_id=${folder_id}&page=2&per_page=5&tag=a%26b+%3D%C3%A4&type=few-shot`
    )
  })

  it("a request has the API key, the headers of the client and the headers of the call, and does not follow redirects", async () => {
    const { client, requests } = makeScriptedClient([ok], { headers: { "X-App": "one", "x-both": "client" } })
    await client.prompts.get("p", { headers: { "X-Both": "call", Authorization: "Bearer other" } })
    await client.prompts.get("p")
    const own = { accept: "application/json", authorization: `Bearer ${key}`, "x-app": "one" }
    expect(requests.map(({ signal: _, ...request }) => request)).toEqual(
      ["call", "client"].map((both) => ({
        url: "http://127.0.0.1:3000/api/v1/prompts/p",
        method: "GET",
        redirect: "manual",
        headers: { ...own, "x-both": both }
      }))
    )
  })
})

/** Failures that are retried. */
const transientFailures: Record<string, Responder> = {
  "connection refused": connectionRefused,
  ...Object.fromEntries([408, 429, 500, 503, 599].map((status) => [status, () => errorResponse(status)])),
  "502 in HTML": page(502)
}

describe("a retry", () => {
  it.each(Object.keys(transientFailures))(
    "a call is retried twice by default, with exponential backoff and jitter, after: %s",
    async (kind) => {
      const fail = transientFailures[kind]!
      for (const [random, first, second] of [
        [0, 250, 500],
        [0.999999, 499, 999]
      ] as const) {
        vi.spyOn(Math, "random").mockReturnValue(random)
        const { client, requests } = makeScriptedClient([fail, fail, ok])
        const call = client.prompts.get("p")
        await advance(first - 1)
        expect(requests).toHaveLength(1)
        await advance(2)
        expect(requests).toHaveLength(2)
        await advance(second - 3)
        expect(requests).toHaveLength(2)
        await advance(4)
        expect(await call).toEqual(envelope)
      }
    }
  )

  it.each([0, 1, 5])(
    "a call fails after maxRetries retries, set for the client or for the call: %i",
    async (maxRetries) => {
      for (const [options, call] of [
        [{ maxRetries }, {}],
        [{}, { maxRetries }]
      ]) {
        const { client, requests } = makeScriptedClient([serviceUnavailable], options)
        expect(await captureError(client.prompts.get("p", call))).toBeInstanceOf(ServiceUnavailableError)
        expect(requests).toHaveLength(maxRetries + 1)
      }
    }
  )

  it.each([400, 401, 402, 403, 404, 405, 409, 431])("a %i is not retried", async (status) => {
    const { client, requests } = makeScriptedClient([() => errorResponse(status)])
    expect(await settle(client.prompts.get("p"))).toMatchObject({ error: { status }, took: 0 })
    expect(requests).toHaveLength(1)
  })
})

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["17", 17_000],
    // The client waits for at most one minute.
    ["999999999999999", 60_000]
  ])("Retry-After: %s delays the retry of a 429 and of a 503 by %i ms", async (value, took) => {
    for (const status of [429, 503]) {
      const failure = () => errorResponse(status, "CODE", "Later", { "retry-after": value })
      const { client, requests } = makeScriptedClient([failure, ok])
      expect(await settle(client.prompts.get("p", { timeout: took + 1 }))).toEqual({ value: envelope, took })
      expect(requests).toHaveLength(2)
    }
  })

  it.each(["", "Thu, 01 Jan 2026 00:00:09 GMT", "-5", "1.5", "0x10", "1e3"])(
    "a Retry-After that is empty or contains other characters than digits is ignored: %j",
    async (value) => {
      vi.spyOn(Math, "random").mockReturnValue(0)
      const failure = () => errorResponse(503, "CODE", "Later", { "retry-after": value })
      const { client } = makeScriptedClient([failure, ok, failure])
      expect(await settle(client.prompts.get("p"))).toEqual({ value: envelope, took: 250 })
      const error = await captureError(client.prompts.get("p", { maxRetries: 0 }))
      expect(error).toMatchObject({ retryAfter: undefined })
    }
  )

  it("a Retry-After beyond the timeout makes the call reject immediately with the error of the response", async () => {
    for (const value of ["30", "999999999999999"]) {
      const { client, requests } = makeScriptedClient([() => rateLimited(value)])
      expect(await settle(client.prompts.get("p"))).toMatchObject({
        error: { status: 429, code: "RATE_LIMITED", requestId: "req-429", retryAfter: Number(value) },
        took: 0
      })
      expect(requests).toHaveLength(1)
    }
  })

  it("a 429 delays every call of the client, but no call of another client", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("10"), ok])
    const other = makeScriptedClient([ok])
    const all = [client.prompts.get("a")]
    await advance(10)
    all.push(client.prompts.get("b"), client.prompts.get("c", { maxRetries: 0 }))
    expect(await settle(other.client.prompts.get("d"))).toEqual({ value: envelope, took: 0 })
    await advance(9_989)
    expect(requests).toHaveLength(1)
    await advance(1)
    expect(await Promise.all(all)).toEqual([envelope, envelope, envelope])
    expect(requests.map(({ url }) => url.slice(-1))).toEqual(["a", "a", "b", "c"])
  })

  it("a call that would time out during the pause after a 429 rejects immediately, without a request", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("50"), ok])
    await captureError(client.prompts.get("a"))
    await advance(7_500)
    const error = await captureError(client.prompts.get("b"))
    expect({ ...error, name: error.name, message: error.message }).toEqual({
      name: "RateLimitedError",
      status: 429,
      code: "RATE_LIMITED",
      message: "Rate limit exceeded; no request was sent",
      requestId: "req-429",
      retryAfter: 43
    })
    expect(requests).toHaveLength(1)
    await advance(42_500)
    expect(await settle(client.prompts.get("b"))).toEqual({ value: envelope, took: 0 })
  })
})

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

describe("the log", () => {
  it("each attempt is logged: at the level warn after a transient failure, and at debug otherwise", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const notFound = () => errorResponse(404, "NOT_FOUND", "No")
    const { client, log } = makeScriptedClient([connectionRefused, serviceUnavailable, ok, notFound])
    await settle(client.prompts.list({ tag: "secret" }).catch(() => {}))
    await settle(client.prompts.get("p").catch(() => {}))
    const line = (status: number | undefined, requestId: string | undefined, attempt: number, path = "") => ({
      method: "GET",
      path: `/api/v1/prompts${path}`,
      status,
      duration: 0,
      requestId,
      attempt
    })
    expect(log).toEqual([
      ["warn", "GET /api/v1/prompts without a response", line(undefined, undefined, 1)],
      ["warn", "GET /api/v1/prompts 503", line(503, "req-503", 2)],
      ["debug", "GET /api/v1/prompts 200", line(200, "req-200", 3)],
      ["debug", "GET /api/v1/prompts/p 404", line(404, undefined, 1, "/p")]
    ])
  })

  it("a call that waits because another call got a 429 is logged at the level warn", async () => {
    const { client, log } = makeScriptedClient([() => rateLimited("2"), ok, ok], { timeout: 10_000 })
    const limited = client.prompts.get("p")
    await advance(10)
    await settle(Promise.all([limited, client.prompts.list()]))
    expect(log.map(([level, message]) => [level, message])).toEqual([
      ["warn", "GET /api/v1/prompts/p 429"],
      ["warn", "GET /api/v1/prompts waits for the rate limit"],
      ["debug", "GET /api/v1/prompts/p 200"],
      ["debug", "GET /api/v1/prompts 200"]
    ])
  })

  it("an exception in the logger is ignored", async () => {
    const warn = () => {
      throw new Error("disk full")
    }
    const { client } = makeScriptedClient([serviceUnavailable, ok], { logger: { warn } })
    expect(await settle(client.prompts.get("p"))).toMatchObject({ value: envelope })
  })
})
