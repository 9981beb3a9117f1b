import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  AbortError,
  InvalidResponseError,
  PromptClient,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError
} from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  flush,
  installFakeTime,
  jsonResponse,
  key,
  makeScriptedClient,
  neverResponds,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  promptId,
  toId
} from "./support.ts"

beforeEach(() => void installFakeTime())
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const ok = () => jsonResponse(200, { data: { id: "p" } }, { "x-request-id": "req-200" })
const envelope = { data: { id: "p" } }

describe("a request", () => {
  const captureUrl = async (call: (client: PromptClient) => Promise<unknown>, baseUrl?: string) => {
    const { client, requests } = makeScriptedClient([() => jsonResponse(200, { data: {} })], {
      baseUrl,
      maxRetries: 0
    })
    await settle(call(client))
    expect(requests).toHaveLength(1)
    return requests[0]!.url
  }

  it.each([
    [undefined, "http://127.0.0.1:3000"],
    ["https://prompts.example.com", "https://prompts.example.com"],
    ["https://prompts.example.com/", "https://prompts.example.com"],
    ["http://host:8080/a/b", "http://host:8080/a/b"],
    ["http://host:8080/a/b//", "http://host:8080/a/b"],
    ["http://[::1]:3000/", "http://[::1]:3000"]
  ])("a client with baseUrl %s sends its requests to %s/api/v1", async (baseUrl, base) => {
    expect(await captureUrl((client) => client.prompts.get(promptId), baseUrl)).toBe(
      `${base}/api/v1/prompts/p`
    )
  })

  it.each([
    "ftp://host",
    "file:///etc",
    "http://user:pass@host",
    "http://host?a=b",
    "http://host#a",
    "host",
    ""
  ])("the constructor throws a TypeError that names baseUrl: %j", (baseUrl) => {
    expect(() => new PromptClient({ apiKey: key, baseUrl })).toThrow(
      new TypeError("baseUrl must be an http or https URL without credentials, query or fragment")
    )
  })

  it("each method requests the path of its endpoint", async () => {
    const base = "http://127.0.0.1:3000/api/v1/prompts"
    expect(await Promise.all(allCalls.map((call) => captureUrl(call)))).toEqual([
      base,
      `${base}/p`,
      `${base}/p/resolved`,
      `${base}/p/versions`,
      `${base}/p/versions/1`
    ])
  })

  it.each(["", undefined, null, 7, {}, { slots: [] }])(
    "a value that is neither a name nor an id rejects with a TypeError and sends no request: %j",
    async (wrong) => {
      const { client, requests } = makeScriptedClient([ok])
      const id = wrong as string
      for (const call of [
        () => client.prompts.get(id),
        () => client.prompts.getResolved(id),
        () => client.prompts.versions.list(id),
        () => client.prompts.versions.get(id, 1)
      ]) {
        expect(await captureError(call())).toEqual(new TypeError("prompt must be a name or an id"))
      }
      expect(requests).toEqual([])
    }
  )

  it("undefined query parameters are omitted, the others sorted by name", async () => {
    const folder_id = "bab2b473-f525-5bbd-9bfd-ea3313c3418e"
    const query = async (params: Parameters<PromptClient["prompts"]["list"]>[0]) =>
      new URL(await captureUrl((client) => client.prompts.list(params))).search
    expect(await query(undefined)).toBe("")
    expect(await query({})).toBe("")
    expect(await query({ page: undefined, tag: undefined, type: undefined })).toBe("")
    expect(await query({ type: "few-shot", tag: "a&b =ä", per_page: 5, folder_id, page: 2 })).toBe(
      `?folder_id=${folder_id}&page=2&per_page=5&tag=a%26b+%3D%C3%A4&type=few-shot`
    )
  })

  it("a request carries the API key and the headers of client and call, and does not follow redirects", async () => {
    const { client, requests } = makeScriptedClient([ok], { headers: { "X-App": "one", "x-both": "client" } })
    await settle(
      client.prompts.get(promptId, { headers: { "X-Both": "call", Authorization: "Bearer other" } })
    )
    await settle(client.prompts.get(promptId))
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

  it("the default fetch is globalThis.fetch at the time of the call", async () => {
    const platform = vi.spyOn(globalThis, "fetch").mockImplementation(async () => ok())
    const client = new PromptClient({ apiKey: key })
    expect(await settle(client.prompts.get(promptId))).toMatchObject({ value: envelope })
    expect(platform).toHaveBeenCalledTimes(1)
  })

  it.each([
    { timeout: 0 },
    { timeout: 1.5 },
    { timeout: 2 ** 31 },
    { timeout: Number.NaN },
    { maxRetries: -1 },
    { maxRetries: Number.POSITIVE_INFINITY }
  ])("invalid limits throw or reject with a RangeError: %j", async (options) => {
    expect(() => makeScriptedClient([ok], options)).toThrow(RangeError)
    const { client, requests } = makeScriptedClient([ok])
    for (const call of allCalls) expect(await captureError(call(client, options))).toBeInstanceOf(RangeError)
    expect(requests).toEqual([])
  })
})

/** Failures that are retried. */
const transientFailures: Record<string, Responder> = {
  "connection refused": connectionRefused,
  ...Object.fromEntries(
    [408, 429, 500, 501, 502, 503, 504, 599].map((status) => [
      String(status),
      () => errorResponse(status, "SOME_CODE", "Later")
    ])
  ),
  "502 in HTML": () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } })
}

describe("a retry", () => {
  it.each(Object.keys(transientFailures))(
    "a call is retried twice by default, with exponential backoff and jitter, after: %s",
    async (kind) => {
      for (const [random, first, second] of [
        [0, 250, 500],
        [0.999999, 499, 999]
      ] as const) {
        vi.spyOn(Math, "random").mockReturnValue(random)
        const { client, requests } = makeScriptedClient([
          transientFailures[kind]!,
          transientFailures[kind]!,
          ok
        ])
        const call = client.prompts.get(promptId)
        await advance(first - 1)
        expect(requests).toHaveLength(1)
        await advance(2)
        expect(requests).toHaveLength(2)
        await advance(second - 3)
        expect(requests).toHaveLength(2)
        await advance(4)
        expect(await call).toEqual(envelope)
        expect(requests).toHaveLength(3)
      }
    }
  )

  it("a call fails after maxRetries retries, set for the client or for the call", async () => {
    for (const maxRetries of [0, 1, 2, 5]) {
      const byClient = makeScriptedClient([serviceUnavailable], { maxRetries })
      expect(await captureError(byClient.client.prompts.get(promptId))).toBeInstanceOf(
        ServiceUnavailableError
      )
      expect(byClient.requests).toHaveLength(maxRetries + 1)
      const byCall = makeScriptedClient([serviceUnavailable])
      expect(await captureError(byCall.client.prompts.get(promptId, { maxRetries }))).toBeInstanceOf(
        ServiceUnavailableError
      )
      expect(byCall.requests).toHaveLength(maxRetries + 1)
    }
  })

  it("a ConnectionError shows the code of a cause without a message", async () => {
    const { client } = makeScriptedClient([
      () => {
        throw Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" })
      }
    ])
    expect((await captureError(client.prompts.get(promptId))).message).toMatch(
      /^No response from the service: ECONNREFUSED/
    )
  })

  it("a ConnectionError says that baseUrl is the default, unless it is set", async () => {
    const getMessage = async (baseUrl?: string) => {
      const { client } = makeScriptedClient([connectionRefused], { baseUrl, maxRetries: 0 })
      return (await captureError(client.prompts.get(promptId))).message
    }
    const cause = "No response from the service: fetch failed: connect ECONNREFUSED 127.0.0.1:3000"
    expect(await getMessage()).toBe(
      `${cause} (PROMPT_RETRIEVAL_URL is not set; the default is http://127.0.0.1:3000)`
    )
    expect(await getMessage("http://127.0.0.1:3000")).toBe(cause)
  })

  it.each([400, 401, 402, 403, 404, 405, 409, 431])("a %i is not retried", async (status) => {
    const { client, requests } = makeScriptedClient([() => errorResponse(status, "CODE", "No")])
    expect(await settle(client.prompts.get(promptId))).toMatchObject({ error: { status }, took: 0 })
    expect(requests).toHaveLength(1)
  })

  it("malformed JSON and redirects are not retried", async () => {
    for (const respond of [
      () => new Response("{", { headers: { "content-type": "application/json" } }),
      () => new Response(null, { status: 301, headers: { location: "/" } })
    ]) {
      const { client, requests } = makeScriptedClient([respond])
      expect(await captureError(client.prompts.get(promptId))).toBeInstanceOf(InvalidResponseError)
      expect(requests).toHaveLength(1)
    }
  })

  it("a retry cancels the body of the previous response, and the last body is read", async () => {
    const cancelled: Array<number> = []
    const open = (status: number) => () =>
      new Response(
        new ReadableStream({
          start: (stream) => {
            stream.enqueue(new TextEncoder().encode(JSON.stringify({ error: { code: "C", message: "m" } })))
            if (status !== 500) stream.close()
          },
          cancel: () => void cancelled.push(status)
        }),
        { status, headers: { "content-type": "application/json" } }
      )
    const { client } = makeScriptedClient([open(500), open(503)], { maxRetries: 1 })
    expect(await captureError(client.prompts.get(promptId))).toMatchObject({
      status: 503,
      code: "C",
      message: "m"
    })
    expect(cancelled).toEqual([500])
  })
})

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["1", 1_000],
    ["17", 17_000]
  ])("Retry-After: %s delays the retry of a 429 and of a 503 by %i ms", async (value, took) => {
    for (const status of [429, 503]) {
      const { client, requests } = makeScriptedClient([
        () => errorResponse(status, "CODE", "Later", { "retry-after": value }),
        ok
      ])
      expect(await settle(client.prompts.get(promptId))).toEqual({ value: envelope, took })
      expect(requests).toHaveLength(2)
    }
  })

  it.each(["", "soon", "Thu, 01 Jan 2026 00:00:09 GMT", "-5", "1.5", "2026-01-01", "0x10", "1e3"])(
    "a Retry-After that is not a number of seconds is ignored: %j",
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

  it("a Retry-After beyond the call's timeout rejects immediately with the response's error", async () => {
    for (const value of ["30", "60", "999999999999999"]) {
      const { client, requests } = makeScriptedClient([() => rateLimited(value)])
      const outcome = await settle(client.prompts.get(promptId))
      expect(outcome).toMatchObject({
        error: { status: 429, code: "RATE_LIMITED", requestId: "req-429", retryAfter: Number(value) },
        took: 0
      })
      expect(requests).toHaveLength(1)
    }
    const patient = makeScriptedClient([() => rateLimited("60"), ok])
    expect(await settle(patient.client.prompts.get(promptId, { timeout: 60_001 }))).toEqual({
      value: envelope,
      took: 60_000
    })
  })
})

describe("a Retry-After of more than a minute", () => {
  it("pauses the client for one minute at most after 429, and the error has the value received", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("86400"), ok])
    expect(await captureError(client.prompts.get(toId("a")))).toMatchObject({
      status: 429,
      retryAfter: 86_400
    })
    await advance(20_000)
    expect(await captureError(client.prompts.get(toId("b")))).toMatchObject({ status: 429, retryAfter: 40 })
    await advance(40_000)
    expect(requests).toHaveLength(1)
    expect(await settle(client.prompts.get(toId("c")))).toEqual({ value: envelope, took: 0 })
  })

  it.each([429, 503])("delays a retry after %s by one minute at most", async (status) => {
    for (const value of ["86400", "999999999999999"]) {
      const { client } = makeScriptedClient([
        () => errorResponse(status, "CODE", "Later", { "retry-after": value }),
        ok
      ])
      expect(await settle(client.prompts.get(promptId, { timeout: 90_000 }))).toEqual({
        value: envelope,
        took: 60_000
      })
    }
  })

  it("rejects immediately after 503 if the call cannot wait a minute", async () => {
    const { client, requests } = makeScriptedClient([
      () => errorResponse(503, "CODE", "Later", { "retry-after": "86400" }),
      ok
    ])
    expect(await settle(client.prompts.get(promptId))).toMatchObject({
      error: { status: 503, retryAfter: 86_400 },
      took: 0
    })
    expect(requests).toHaveLength(1)
    expect(await settle(client.prompts.get(promptId))).toEqual({ value: envelope, took: 0 })
  })
})

describe("the timeout", () => {
  it.each([
    [undefined, undefined, 30_000],
    [5_000, undefined, 5_000],
    [5_000, 70, 70]
  ])(
    "an attempt without a response is aborted after the timeout: %s of the client, %s of the call, %i ms in effect",
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

  it("the timeout covers a body that never ends", async () => {
    const stuck = () =>
      new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array([123])) }), {
        headers: { "content-type": "application/json" }
      })
    const { client } = makeScriptedClient([stuck])
    expect(await settle(client.prompts.get(promptId))).toEqual({
      error: new TimeoutError("No result within 30000 ms"),
      took: 30_000
    })
  })

  it("a fetch that ignores its signal times out, and its late response is not retried", async () => {
    let respond: (response: Response) => void = () => {}
    const ignoreSignal = () => new Promise<Response>((resolve) => (respond = resolve))
    const { client, requests } = makeScriptedClient([ignoreSignal])
    expect(await settle(client.prompts.get(promptId))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 30_000
    })
    respond(serviceUnavailable())
    await advance(60_000)
    expect(requests).toHaveLength(1)
  })

  it("the timeout covers all attempts and the delays between them", async () => {
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

  it("a call that has settled leaves no timer behind", async () => {
    const { client } = makeScriptedClient([serviceUnavailable, ok])
    await settle(client.prompts.get(promptId))
    expect(vi.getTimerCount()).toBe(0)
    await captureError(makeScriptedClient([neverResponds]).client.prompts.get(promptId))
    expect(vi.getTimerCount()).toBe(0)
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

  it("after an abort, the body of a late response is cancelled, and nothing is logged as a warning", async () => {
    let respond: (response: Response) => void = () => {}
    const { client, log } = makeScriptedClient([
      () => new Promise<Response>((resolve) => (respond = resolve)),
      neverResponds
    ])
    const controller = new AbortController()
    const late = client.prompts.get(promptId, { signal: controller.signal })
    await flush()
    controller.abort()
    expect(await captureError(late)).toBeInstanceOf(AbortError)
    const cancel = vi.fn()
    respond(new Response(new ReadableStream({ cancel }), { headers: { "content-type": "application/json" } }))
    await flush()
    expect(cancel).toHaveBeenCalledTimes(1)

    const secondController = new AbortController()
    const second = client.prompts.get(promptId, { signal: secondController.signal })
    await flush()
    secondController.abort()
    expect(await captureError(second)).toBeInstanceOf(AbortError)
    await flush()
    expect(log.map(([level, message]) => [level, message])).toEqual([
      ["debug", "GET /api/v1/prompts/p 200"],
      ["debug", "GET /api/v1/prompts/p without a response"]
    ])
  })

  it("every method rejects an aborted signal with an AbortError and sends no request", async () => {
    const { client, requests } = makeScriptedClient([ok])
    for (const call of allCalls) {
      expect(await captureError(call(client, { signal: AbortSignal.abort("gone") }))).toEqual(
        new AbortError("The call was aborted", { cause: "gone" })
      )
    }
    expect(requests).toEqual([])
  })

  it("a call removes its listener from the signal when it settles", async () => {
    const { client } = makeScriptedClient([ok, serviceUnavailable, ok])
    const { signal } = new AbortController()
    const listeners = new Set<unknown>()
    vi.spyOn(signal, "addEventListener").mockImplementation((_, listener) => void listeners.add(listener))
    vi.spyOn(signal, "removeEventListener").mockImplementation(
      (_, listener) => void listeners.delete(listener)
    )
    await settle(client.prompts.get(promptId, { signal }))
    await settle(client.prompts.get(promptId, { signal }))
    expect(signal.addEventListener).toHaveBeenCalledTimes(2)
    expect([...listeners]).toEqual([])
  })
})

describe("the pause after a 429", () => {
  it("a 429 delays every call of the client, but not another client's", async () => {
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

  it("a later 429 with a shorter Retry-After does not shorten the pause", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("20"), () => rateLimited("5"), ok])
    const both = [settle(client.prompts.get(toId("a"))), settle(client.prompts.get(toId("b")))]
    expect(await Promise.all(both)).toMatchObject([
      { value: envelope, took: 20_000 },
      { value: envelope, took: 20_000 }
    ])
    expect(requests).toHaveLength(4)
  })

  it("a 503 does not delay other calls", async () => {
    const { client } = makeScriptedClient([
      () => errorResponse(503, "CODE", "Later", { "retry-after": "5" }),
      ok
    ])
    const first = client.prompts.get(toId("a"))
    await flush()
    expect(await settle(client.prompts.get(toId("b")))).toEqual({ value: envelope, took: 0 })
    expect(await settle(first)).toEqual({ value: envelope, took: 5_000 })
  })
})

describe("the log", () => {
  it("each attempt is logged: warn after a transient failure, otherwise debug", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { client, log } = makeScriptedClient([
      connectionRefused,
      serviceUnavailable,
      ok,
      () => errorResponse(404, "NOT_FOUND", "No")
    ])
    await settle(client.prompts.list({ tag: "secret" }).catch(() => {}))
    await settle(client.prompts.get(promptId).catch(() => {}))
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

  it("a logger may lack methods, be absent or throw", async () => {
    const broken = () => {
      throw new Error("disk full")
    }
    for (const logger of [undefined, {}, { warn: broken, debug: broken }]) {
      const { client } = makeScriptedClient([serviceUnavailable, ok], { logger })
      expect(await settle(client.prompts.get(promptId))).toMatchObject({ value: envelope })
    }
  })
})
