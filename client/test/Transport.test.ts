import { describe, expect, it, vi } from "vitest"
import { PromptClient, ServiceUnavailableError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  useFakeTime,
  jsonResponse,
  key,
  envelope,
  makeScriptedClient,
  ok,
  page,
  type Responder,
  serviceUnavailable,
  settle,
  promptId,
  rateLimited
} from "./support.ts"

useFakeTime()

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
  ])("the constructor throws a TypeError that names baseUrl if baseUrl is %j", (baseUrl) => {
    expect(() => new PromptClient({ apiKey: key, baseUrl })).toThrow(
      new TypeError("baseUrl must be an http or https URL without credentials, query or fragment")
    )
  })

  it("undefined query parameters are omitted, and all other parameters are sorted by name", async () => {
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

  it("a request has the API key, the headers of the client and the headers of the call, and does not follow redirects", async () => {
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

  it.each([
    { timeout: 0 },
    { timeout: 1.5 },
    { timeout: 2 ** 31 },
    { timeout: Number.NaN },
    { maxRetries: -1 },
    { maxRetries: Number.POSITIVE_INFINITY }
  ])("invalid limits make the constructor and every call fail with a RangeError: %j", async (options) => {
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
  "502 in HTML": page(502)
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

  it("a call fails after maxRetries retries; maxRetries can be set for the client or for the call", async () => {
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

  it("the message of a ConnectionError names the URL of the service and the causes, by their codes if they have no message", async () => {
    const getMessage = async (cause: Error) => {
      const fail = () => {
        throw new TypeError("fetch failed", { cause })
      }
      const { client } = makeScriptedClient([fail], { maxRetries: 0 })
      return (await captureError(client.prompts.get(promptId))).message
    }
    const code = "ECONNREFUSED"
    expect(await getMessage(Object.assign(new AggregateError([], ""), { code }))).toBe(
      "No response from http://127.0.0.1:3000: fetch failed: ECONNREFUSED"
    )
    expect(await getMessage(new Error("connect ECONNREFUSED ::1"))).toBe(
      "No response from http://127.0.0.1:3000: fetch failed: connect ECONNREFUSED ::1"
    )
  })

  it.each([400, 401, 402, 403, 404, 405, 409, 431])("a %i is not retried", async (status) => {
    const { client, requests } = makeScriptedClient([() => errorResponse(status, "CODE", "No")])
    expect(await settle(client.prompts.get(promptId))).toMatchObject({ error: { status }, took: 0 })
    expect(requests).toHaveLength(1)
  })
})

describe("the log", () => {
  it("an exception in the logger is ignored", async () => {
    const warn = () => {
      throw new Error("disk full")
    }
    const { client } = makeScriptedClient([serviceUnavailable, ok], { logger: { warn } })
    expect(await settle(client.prompts.get(promptId))).toMatchObject({ value: envelope })
  })

  it("each attempt is logged: at the level warn after a transient failure, and at debug otherwise", async () => {
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

  it("a call that waits because another call got a 429 is logged at the level warn", async () => {
    const { client, log } = makeScriptedClient([() => rateLimited("2"), ok, ok], { timeout: 10_000 })
    const limited = client.prompts.get(promptId)
    await advance(10)
    await settle(Promise.all([limited, client.prompts.list()]))
    expect(log.map(([level, message]) => [level, message])).toEqual([
      ["warn", "GET /api/v1/prompts/p 429"],
      ["warn", "GET /api/v1/prompts waits for the rate limit"],
      ["debug", "GET /api/v1/prompts/p 200"],
      ["debug", "GET /api/v1/prompts 200"]
    ])
  })
})
