import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  AbortError,
  ConnectionError,
  InvalidResponseError,
  PromptClient,
  RateLimitedError,
  ServiceUnavailableError,
  TimeoutError
} from "../../../src/adapters/client/index.ts"
import {
  calls,
  failure,
  fakeTime,
  flush,
  json,
  key,
  limited,
  pass,
  type Reply,
  refusal,
  refused,
  scripted,
  settle,
  silent,
  unavailable
} from "./support.ts"

beforeEach(() => void fakeTime())
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const found = () => json(200, { data: { id: "p" } }, { "x-request-id": "req-200" })
const envelope = { data: { id: "p" } }

describe("a request", () => {
  const targetOf = async (call: (client: PromptClient) => Promise<unknown>, baseUrl?: string) => {
    const { client, requests } = scripted([() => json(200, { data: {} })], { baseUrl, maxRetries: 0 })
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
  ])("goes to baseUrl %s", async (baseUrl, base) => {
    expect(await targetOf((client) => client.prompts.get("p"), baseUrl)).toBe(`${base}/api/v1/prompts/p`)
  })

  it.each([
    "ftp://host",
    "file:///etc",
    "http://user:pass@host",
    "http://host?a=b",
    "http://host#a",
    "host",
    ""
  ])("can't go to baseUrl %s", (baseUrl) => {
    expect(() => new PromptClient({ apiKey: key, baseUrl })).toThrow(TypeError)
  })

  it("has the path of its endpoint", async () => {
    const base = "http://127.0.0.1:3000/api/v1/prompts"
    expect(await Promise.all(calls.map((call) => targetOf(call)))).toEqual([
      base,
      `${base}/p`,
      `${base}/p/resolved`,
      `${base}/p/versions`,
      `${base}/p/versions/1`
    ])
  })

  it("percent-encodes ids", async () => {
    const base = "http://127.0.0.1:3000/api/v1/prompts/"
    for (const [id, encoded] of [
      ["a/b", "a%2Fb"],
      ["a?b#c", "a%3Fb%23c"],
      ["../admin", "..%2Fadmin"],
      ["%2e", "%252e"],
      ["ä\ud800", "%C3%A4%EF%BF%BD"],
      ["...", "..."]
    ] as const) {
      expect(await targetOf((client) => client.prompts.get(id))).toBe(base + encoded)
      expect(await targetOf((client) => client.prompts.getResolved(id))).toBe(`${base}${encoded}/resolved`)
      expect(await targetOf((client) => client.prompts.versions.list(id))).toBe(`${base}${encoded}/versions`)
      expect(await targetOf((client) => client.prompts.versions.get(id, 2))).toBe(
        `${base}${encoded}/versions/2`
      )
    }
  })

  it.each(["", ".", "..", undefined, 7])(
    "is not made for an id that is no part of a path: %s",
    async (wrong) => {
      const { client, requests } = scripted([found])
      const id = wrong as string
      for (const call of [
        () => client.prompts.get(id),
        () => client.prompts.getResolved(id),
        () => client.prompts.versions.list(id),
        () => client.prompts.versions.get(id, 1)
      ]) {
        expect(await failure(call())).toEqual(new TypeError("id must be a prompt's id"))
      }
      expect(requests).toEqual([])
    }
  )

  it("leaves undefined parameters out and writes the others in one order", async () => {
    const folder_id = "bab2b473-f525-5bbd-9bfd-ea3313c3418e"
    const query = async (params: Parameters<PromptClient["prompts"]["list"]>[0]) =>
      new URL(await targetOf((client) => client.prompts.list(params))).search
    expect(await query(undefined)).toBe("")
    expect(await query({})).toBe("")
    expect(await query({ page: undefined, tag: undefined, type: undefined })).toBe("")
    expect(await query({ type: "few-shot", tag: "a&b =ä", per_page: 5, folder_id, page: 2 })).toBe(
      `?folder_id=${folder_id}&page=2&per_page=5&tag=a%26b+%3D%C3%A4&type=few-shot`
    )
  })

  it("carries the key, the client's headers and the call's over them, and follows no redirect", async () => {
    const { client, requests } = scripted([found], { headers: { "X-App": "one", "x-both": "client" } })
    await settle(client.prompts.get("p", { headers: { "X-Both": "call", Authorization: "Bearer other" } }))
    await settle(client.prompts.get("p"))
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

  it("is made with the platform's fetch, found when it is called", async () => {
    const platform = vi.spyOn(globalThis, "fetch").mockImplementation(async () => found())
    const client = new PromptClient({ apiKey: key })
    expect(await settle(client.prompts.get("p"))).toMatchObject({ value: envelope })
    expect(platform).toHaveBeenCalledTimes(1)
  })

  it.each([
    { timeout: 0 },
    { timeout: 1.5 },
    { timeout: 2 ** 31 },
    { timeout: Number.NaN },
    { maxRetries: -1 },
    { maxRetries: Number.POSITIVE_INFINITY }
  ])("has limits that a timer can keep: not %j", async (options) => {
    expect(() => scripted([found], options)).toThrow(RangeError)
    const { client, requests } = scripted([found])
    for (const call of calls) expect(await failure(call(client, options))).toBeInstanceOf(RangeError)
    expect(requests).toEqual([])
  })
})

/** Failures that may pass. */
const transient: Record<string, Reply> = {
  "connection refused": refused,
  "reset in mid-body": () =>
    new Response(
      new ReadableStream({
        pull: (stream) => stream.error(new TypeError("terminated", { cause: new Error("other side closed") }))
      }),
      { headers: { "content-type": "application/json" } }
    ),
  ...Object.fromEntries(
    [408, 429, 500, 501, 502, 503, 504, 599].map((status) => [
      String(status),
      () => refusal(status, "SOME_CODE", "Later")
    ])
  ),
  "502 in HTML": () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } })
}

describe("a retry", () => {
  it.each(Object.keys(transient))(
    "comes after %s, twice unless told, with a growing random wait",
    async (kind) => {
      for (const [random, first, second] of [
        [0, 250, 500],
        [0.999999, 499, 999]
      ] as const) {
        vi.spyOn(Math, "random").mockReturnValue(random)
        const { client, requests } = scripted([transient[kind]!, transient[kind]!, found])
        const call = client.prompts.get("p")
        await pass(first - 1)
        expect(requests).toHaveLength(1)
        await pass(2)
        expect(requests).toHaveLength(2)
        await pass(second - 3)
        expect(requests).toHaveLength(2)
        await pass(4)
        expect(await call).toEqual(envelope)
        expect(requests).toHaveLength(3)
      }
    }
  )

  it("gives up after maxRetries, of the client or of the call", async () => {
    for (const maxRetries of [0, 1, 2, 5]) {
      const byClient = scripted([unavailable], { maxRetries })
      expect(await failure(byClient.client.prompts.get("p"))).toBeInstanceOf(ServiceUnavailableError)
      expect(byClient.requests).toHaveLength(maxRetries + 1)
      const byCall = scripted([unavailable])
      expect(await failure(byCall.client.prompts.get("p", { maxRetries }))).toBeInstanceOf(
        ServiceUnavailableError
      )
      expect(byCall.requests).toHaveLength(maxRetries + 1)
    }
  })

  it("gives up with the words of the connection's causes", async () => {
    const { client } = scripted([refused])
    const error = await failure(client.prompts.get("p"))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error.message).toBe(
      "No answer from the service: fetch failed: connect ECONNREFUSED 127.0.0.1:3000"
    )
    const nameless = scripted([
      () => {
        throw Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" })
      }
    ])
    expect((await failure(nameless.client.prompts.get("p"))).message).toBe(
      "No answer from the service: ECONNREFUSED"
    )
  })

  it.each([400, 401, 402, 403, 404, 405, 409, 431])("never comes after %s", async (status) => {
    const { client, requests } = scripted([() => refusal(status, "CODE", "No")])
    expect(await settle(client.prompts.get("p"))).toMatchObject({ error: { status }, took: 0 })
    expect(requests).toHaveLength(1)
  })

  it("never comes after an answer that is broken or redirects", async () => {
    for (const answer of [
      () => new Response("{", { headers: { "content-type": "application/json" } }),
      () => new Response(null, { status: 301, headers: { location: "/" } })
    ]) {
      const { client, requests } = scripted([answer])
      expect(await failure(client.prompts.get("p"))).toBeInstanceOf(InvalidResponseError)
      expect(requests).toHaveLength(1)
    }
  })

  it("cancels the body of the answer that it comes after, and no other", async () => {
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
    const { client } = scripted([open(500), open(503)], { maxRetries: 1 })
    expect(await failure(client.prompts.get("p"))).toMatchObject({ status: 503, code: "C", message: "m" })
    expect(cancelled).toEqual([500])
  })
})

describe("Retry-After", () => {
  it.each([
    ["0", 0],
    ["1", 1_000],
    ["17", 17_000]
  ])("%s is obeyed, on 429 and 503 alike", async (value, took) => {
    for (const status of [429, 503]) {
      const { client, requests } = scripted([
        () => refusal(status, "CODE", "Later", { "retry-after": value }),
        found
      ])
      expect(await settle(client.prompts.get("p"))).toEqual({ value: envelope, took })
      expect(requests).toHaveLength(2)
    }
  })

  it("as a date is read by the clock of the service, or by one's own where it tells none", async () => {
    const at = (millis: number) => new Date(millis).toUTCString()
    vi.setSystemTime(Date.UTC(2026, 0, 1))
    for (const [headers, took] of [
      [{ date: at(Date.UTC(2031, 5, 5)), "retry-after": at(Date.UTC(2031, 5, 5, 0, 0, 9)) }, 9_000],
      [{ "retry-after": at(Date.UTC(2026, 0, 1, 0, 0, 4)) }, 4_000],
      [{ date: at(Date.UTC(2026, 0, 1)), "retry-after": at(Date.UTC(2025, 0, 1)) }, 0]
    ] as const) {
      vi.setSystemTime(Date.UTC(2026, 0, 1))
      const { client } = scripted([() => refusal(503, "CODE", "Later", headers), found])
      expect(await settle(client.prompts.get("p"))).toEqual({ value: envelope, took })
    }
  })

  it.each(["", "soon", "-5", "1.5", "2026-01-01", "0x10", "1e3"])(
    "that is neither a number nor a date is none: %j",
    async (value) => {
      vi.spyOn(Math, "random").mockReturnValue(0)
      const { client } = scripted([() => refusal(503, "CODE", "Later", { "retry-after": value }), found])
      expect(await settle(client.prompts.get("p"))).toEqual({ value: envelope, took: 250 })
      const once = scripted([() => refusal(503, "CODE", "Later", { "retry-after": value })], {
        maxRetries: 0
      })
      expect(await failure(once.client.prompts.get("p"))).toMatchObject({ retryAfter: undefined })
    }
  )

  it("beyond the deadline fails at once, with the error itself", async () => {
    for (const value of ["30", "60", "99999999999999999999"]) {
      const { client, requests } = scripted([() => limited(value)])
      const ended = await settle(client.prompts.get("p"))
      expect(ended).toMatchObject({
        error: { status: 429, code: "RATE_LIMITED", requestId: "req-429", retryAfter: Number(value) },
        took: 0
      })
      expect(requests).toHaveLength(1)
    }
    const patient = scripted([() => limited("60"), found])
    expect(await settle(patient.client.prompts.get("p", { timeout: 60_001 }))).toEqual({
      value: envelope,
      took: 60_000
    })
  })
})

describe("a Retry-After of more than a minute", () => {
  it("pauses the client for one minute at most after 429, and the error has the value received", async () => {
    const { client, requests } = scripted([() => limited("86400"), found])
    expect(await failure(client.prompts.get("a"))).toMatchObject({ status: 429, retryAfter: 86_400 })
    await pass(20_000)
    expect(await failure(client.prompts.get("b"))).toMatchObject({ status: 429, retryAfter: 40 })
    await pass(40_000)
    expect(requests).toHaveLength(1)
    expect(await settle(client.prompts.get("c"))).toEqual({ value: envelope, took: 0 })
  })

  it.each([429, 503])("is a wait of one minute for a patient call after %s", async (status) => {
    const date = new Date(Date.now() + 86_400_000).toUTCString()
    for (const value of ["86400", "99999999999999999999", date]) {
      const { client } = scripted([() => refusal(status, "CODE", "Later", { "retry-after": value }), found])
      expect(await settle(client.prompts.get("p", { timeout: 90_000 }))).toEqual({
        value: envelope,
        took: 60_000
      })
    }
  })

  it("is a failure at once for a call that can't wait a minute after 503", async () => {
    const { client, requests } = scripted([
      () => refusal(503, "CODE", "Later", { "retry-after": "86400" }),
      found
    ])
    expect(await settle(client.prompts.get("p"))).toMatchObject({
      error: { status: 503, retryAfter: 86_400 },
      took: 0
    })
    expect(requests).toHaveLength(1)
    expect(await settle(client.prompts.get("p"))).toEqual({ value: envelope, took: 0 })
  })
})

describe("the timeout", () => {
  it.each([
    [undefined, undefined, 30_000],
    [5_000, undefined, 5_000],
    [5_000, 70, 70]
  ])("bounds a silent attempt: %s of the client, %s of the call", async (client, call, took) => {
    const { client: quiet, requests, log } = scripted([silent], { timeout: client })
    expect(await settle(quiet.prompts.get("p", { timeout: call }))).toEqual({
      error: new TimeoutError(`No result within ${took} ms`),
      took
    })
    expect(requests).toHaveLength(1)
    expect(requests[0]!.signal.aborted).toBe(true)
    expect(log).toEqual([
      [
        "warn",
        "GET /api/v1/prompts/p without an answer",
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
  })

  it("bounds the reading of a body", async () => {
    const stuck = () =>
      new Response(new ReadableStream({ start: (stream) => stream.enqueue(new Uint8Array([123])) }), {
        headers: { "content-type": "application/json" }
      })
    const { client } = scripted([stuck])
    expect(await settle(client.prompts.get("p"))).toEqual({
      error: new TimeoutError("No result within 30000 ms"),
      took: 30_000
    })
  })

  it("bounds a fetch that does not listen to its signal, and asks nothing more once that ends", async () => {
    let answer: (response: Response) => void = () => {}
    const deaf = () => new Promise<Response>((resolve) => (answer = resolve))
    const { client, requests } = scripted([deaf])
    expect(await settle(client.prompts.get("p"))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 30_000
    })
    answer(unavailable())
    await pass(60_000)
    expect(requests).toHaveLength(1)
  })

  it("bounds all attempts and waits together", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { client, requests } = scripted([unavailable, silent])
    expect(await settle(client.prompts.get("p", { timeout: 1_000 }))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 1_000
    })
    expect(requests).toHaveLength(2)
    // The third attempt would come 750 ms after the first.
    const short = scripted([unavailable])
    expect(await settle(short.client.prompts.get("p", { timeout: 700 }))).toMatchObject({
      error: { status: 503 },
      took: 250
    })
    expect(short.requests).toHaveLength(2)
  })

  it("leaves no timer behind", async () => {
    const { client } = scripted([unavailable, found])
    await settle(client.prompts.get("p"))
    expect(vi.getTimerCount()).toBe(0)
    await failure(scripted([silent]).client.prompts.get("p"))
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe("a signal", () => {
  const aborts: Record<string, Reply> = {
    "before an answer": silent,
    "while the body is read": ({ signal }) =>
      new Response(
        new ReadableStream({
          start: (stream) => signal.addEventListener("abort", () => stream.error(signal.reason))
        }),
        { headers: { "content-type": "application/json" } }
      ),
    "while waiting to retry": () => limited("20"),
    "when fetch does not listen": () => new Promise(() => {})
  }

  it.each(Object.keys(aborts))("ends the call with an AbortError: %s", async (kind) => {
    const { client, requests } = scripted([aborts[kind]!])
    const controller = new AbortController()
    const call = client.prompts.get("p", { signal: controller.signal })
    await flush()
    expect(requests).toHaveLength(1)
    controller.abort("why not")
    expect(await settle(call)).toEqual({
      error: new AbortError("The call was aborted", { cause: "why not" }),
      took: 0
    })
    await pass(60_000)
    expect(requests).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  it("has the body of an answer that comes too late cancelled, and is no warning", async () => {
    let answer: (response: Response) => void = () => {}
    const { client, log } = scripted([() => new Promise<Response>((resolve) => (answer = resolve)), silent])
    const controller = new AbortController()
    const late = client.prompts.get("p", { signal: controller.signal })
    await flush()
    controller.abort()
    expect(await failure(late)).toBeInstanceOf(AbortError)
    const cancel = vi.fn()
    answer(new Response(new ReadableStream({ cancel }), { headers: { "content-type": "application/json" } }))
    await flush()
    expect(cancel).toHaveBeenCalledTimes(1)

    const silenced = new AbortController()
    const quiet = client.prompts.get("p", { signal: silenced.signal })
    await flush()
    silenced.abort()
    expect(await failure(quiet)).toBeInstanceOf(AbortError)
    await flush()
    expect(log.map(([level, message]) => [level, message])).toEqual([
      ["debug", "GET /api/v1/prompts/p 200"],
      ["debug", "GET /api/v1/prompts/p without an answer"]
    ])
  })

  it("that is aborted already sends nothing", async () => {
    const { client, requests } = scripted([found])
    for (const call of calls) {
      expect(await failure(call(client, { signal: AbortSignal.abort("gone") }))).toEqual(
        new AbortError("The call was aborted", { cause: "gone" })
      )
    }
    expect(requests).toEqual([])
  })

  it("used for many calls holds nothing of those that have ended", async () => {
    const { client } = scripted([found, unavailable, found])
    const { signal } = new AbortController()
    const listeners = new Set<unknown>()
    vi.spyOn(signal, "addEventListener").mockImplementation((_, listener) => void listeners.add(listener))
    vi.spyOn(signal, "removeEventListener").mockImplementation(
      (_, listener) => void listeners.delete(listener)
    )
    await settle(client.prompts.get("p", { signal }))
    await settle(client.prompts.get("p", { signal }))
    expect(signal.addEventListener).toHaveBeenCalledTimes(2)
    expect([...listeners]).toEqual([])
  })
})

describe("the pause after 429", () => {
  it("holds up every call of the client, and no other client's", async () => {
    const { client, requests } = scripted([() => limited("10"), found])
    const other = scripted([found])
    const all = [client.prompts.get("a")]
    await flush()
    all.push(client.prompts.get("b"), client.prompts.get("c", { maxRetries: 0 }))
    expect(await settle(other.client.prompts.get("d"))).toEqual({ value: envelope, took: 0 })
    await pass(9_999)
    expect(requests).toHaveLength(1)
    await pass(1)
    expect(await Promise.all(all)).toEqual([envelope, envelope, envelope])
    expect(requests.map(({ url }) => url.slice(-1))).toEqual(["a", "a", "b", "c"])
  })

  it("fails a call that can't wait so long at once, with an error of its own", async () => {
    const { client, requests } = scripted([() => limited("50"), found])
    const first = await failure(client.prompts.get("a"))
    expect(first).toBeInstanceOf(RateLimitedError)
    await pass(7_500)
    const ended = await settle(client.prompts.get("b"))
    const error = (ended as { error: RateLimitedError }).error
    expect(error).toBeInstanceOf(RateLimitedError)
    expect(error).not.toBe(first)
    expect({ ...error, message: error.message, took: ended.took }).toEqual({
      status: 429,
      code: "RATE_LIMITED",
      message: "Rate limit exceeded",
      requestId: "req-429",
      retryAfter: 43,
      took: 0
    })
    expect(requests).toHaveLength(1)
    await pass(42_500)
    expect(await settle(client.prompts.get("b"))).toEqual({ value: envelope, took: 0 })
  })

  it("can only become longer", async () => {
    const { client, requests } = scripted([() => limited("20"), () => limited("5"), found])
    const both = [settle(client.prompts.get("a")), settle(client.prompts.get("b"))]
    expect(await Promise.all(both)).toMatchObject([
      { value: envelope, took: 20_000 },
      { value: envelope, took: 20_000 }
    ])
    expect(requests).toHaveLength(4)
  })

  it("is none of 503's", async () => {
    const { client } = scripted([() => refusal(503, "CODE", "Later", { "retry-after": "5" }), found])
    const first = client.prompts.get("a")
    await flush()
    expect(await settle(client.prompts.get("b"))).toEqual({ value: envelope, took: 0 })
    expect(await settle(first)).toEqual({ value: envelope, took: 5_000 })
  })
})

describe("the log", () => {
  it("tells of each attempt", async () => {
    vi.spyOn(Math, "random").mockReturnValue(0)
    const { client, log } = scripted([refused, unavailable, found, () => refusal(404, "NOT_FOUND", "No")])
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
      ["warn", "GET /api/v1/prompts without an answer", line(undefined, undefined, 1)],
      ["warn", "GET /api/v1/prompts 503", line(503, "req-503", 2)],
      ["debug", "GET /api/v1/prompts 200", line(200, "req-200", 3)],
      ["debug", "GET /api/v1/prompts/p 404", line(404, undefined, 1, "/p")]
    ])
  })

  it("may be partial, absent or broken", async () => {
    const broken = () => {
      throw new Error("disk full")
    }
    for (const logger of [undefined, {}, { warn: broken, debug: broken }]) {
      const { client } = scripted([unavailable, found], { logger })
      expect(await settle(client.prompts.get("p"))).toMatchObject({ value: envelope })
    }
  })
})
