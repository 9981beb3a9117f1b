import { describe, expect, it, vi } from "vitest"
import { AbortError, type CallOptions, type ClientOptions, TimeoutError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  flush,
  jsonResponse,
  makeScriptedClient,
  neverResponds,
  type Responder,
  settle,
  unauthorized,
  useFakeTimeWithoutJitter
} from "./support.ts"

// `cacheModel.test.ts` checks all sequences of calls that do not overlap.

useFakeTimeWithoutJitter()

const ok = (title: string, headers: Record<string, string> = { etag: `"${title}"` }) =>
  jsonResponse(200, { data: { title } }, headers)

/** Responds 200 with a title and its ETag, or 304 if the request names that ETag. */
const revalidatable =
  (title: string): Responder =>
  ({ headers }) =>
    headers["if-none-match"] === `"${title}"`
      ? new Response(null, { status: 304, headers: { etag: `"${title}"` } })
      : ok(title)

const makeCachingClient = (responders: ReadonlyArray<Responder>, options: ClientOptions = {}) => {
  const cache = { ttl: 1_000, maxStale: 9_000, maxEntries: 3 }
  const scripted = makeScriptedClient(responders, { cache, ...options })
  /** Reads a prompt and returns its title, its source and the duration of the call. */
  const read = async (name = "p", call: CallOptions = {}) => {
    const outcome = await settle(scripted.client.prompts.get(name, call))
    if ("error" in outcome) throw outcome.error
    return [outcome.value.data.title, outcome.value.source, outcome.took]
  }
  return { ...scripted, read }
}

/** Makes a client. The test responds to the requests of the client, in any order. */
const makeManualClient = (options: ClientOptions = {}) => {
  const pending: Array<(title: string) => void> = []
  const respondLater = () => new Promise<Response>((resolve) => pending.push((title) => resolve(ok(title))))
  return { ...makeCachingClient([respondLater], options), pending }
}

describe("a cached result", () => {
  it("the source of a result is fresh on the first call of a method and cached on the second call", async () => {
    const list = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const respondOk: Responder = ({ url }) =>
      jsonResponse(200, /(prompts|versions)$/.test(url) ? list : { data: {} })
    const { client, requests } = makeScriptedClient([respondOk], { cache: {} })
    for (const source of ["fresh", "cached"]) {
      const results = await Promise.all(allCalls.map((call) => call(client)))
      expect(results).toEqual(Array(5).fill(expect.objectContaining({ source })))
    }
    expect(requests).toHaveLength(5)
  })

  it("a caller may modify its result without changing the cache or other callers' results", async () => {
    const { client } = makeCachingClient([() => ok("a")])
    const results = await Promise.all([client.prompts.get("p"), client.prompts.get("p")])
    results.push(await client.prompts.get("p"))
    expect(results.map(({ source }) => source)).toEqual(["fresh", "fresh", "cached"])
    for (const result of results) {
      expect(result.data.title).toBe("a")
      Object.assign(result.data, { title: "changed" })
    }
  })

  it("a cache that contains maxEntries entries evicts the least recently used entry for a new entry", async () => {
    const { read } = makeCachingClient([({ url }) => ok(url.slice(-1))])
    for (const id of ["a", "b", "c"]) expect(await read(id)).toEqual([id, "fresh", 0])
    expect(await read("a")).toEqual(["a", "cached", 0])
    expect(await read("d")).toEqual(["d", "fresh", 0])
    for (const id of ["a", "c", "d"]) expect(await read(id)).toEqual([id, "cached", 0])
    expect(await read("b")).toEqual(["b", "fresh", 0])
  })

  it("a call with headers bypasses the cache, unless the headers only identify the request", async () => {
    const { read, requests } = makeCachingClient([revalidatable("a"), () => ok("b"), revalidatable("a")])
    await read()
    expect(await read("p", { headers: { "Cache-Control": "no-cache" } })).toEqual(["b", "fresh", 0])
    expect(requests[1]!.headers["if-none-match"]).toBeUndefined()
    for (const name of ["X-Request-Id", "traceparent", "tracestate", "baggage", "User-Agent"])
      expect(await read("p", { headers: { [name]: "mine" } })).toEqual(["a", "cached", 0])
    expect(await read("q", { headers: { "x-request-id": "mine" } })).toEqual(["a", "fresh", 0])
    expect(requests[2]!.headers["x-request-id"]).toBe("mine")
    expect(requests).toHaveLength(3)
  })
})

describe("the age of a result", () => {
  it("the age of a result counts from the start of its request", async () => {
    const { client, read, pending } = makeManualClient()
    const call = client.prompts.get("p")
    await advance(800)
    pending[0]!("a")
    expect((await call).age).toBe(800)
    await advance(199)
    expect(await read()).toEqual(["a", "cached", 0])
    await advance(1)
    expect(await read()).toEqual(["a", "stale", 0])
  })

  it.each([
    ["10, 400", 10_000],
    ["soon", 0],
    ["-5", 0]
  ])("the result of a response with Age: %s has an age of %i ms", async (age, expected) => {
    const { client } = makeScriptedClient([() => ok("a", { age })], { cache: {} })
    expect((await client.prompts.get("p")).age).toBe(expected)
  })

  it("a response is discarded and requested again if its request started too long ago because the machine was suspended", async () => {
    const { client, pending } = makeManualClient({ cache: { ttl: 1_000, maxStale: 1_000 } })
    const call = client.prompts.get("p")
    await flush()
    vi.setSystemTime(Date.now() + 3_600_000)
    pending[0]!("an hour old")
    await flush()
    expect(pending).toHaveLength(2)
    pending[1]!("current")
    const { data, source, age } = await call
    expect([data.title, source, age]).toEqual(["current", "fresh", 0])
    expect((await client.prompts.get("p")).data.title).toBe("current")
  })
})

describe("calls that overlap", () => {
  it("calls share a request only if query, timeout and maxRetries are equal", async () => {
    const meta = { page: 1, per_page: 20, total: 0 }
    const { client, requests } = makeCachingClient([() => jsonResponse(200, { data: [], meta })])
    const { list } = client.prompts
    await settle(
      Promise.all([
        ...[list(), list({ page: undefined }), list({}, { timeout: 30_000, maxRetries: 2 })],
        ...[list({ tag: "a", page: 1 }), list({ page: 1, tag: "a" })],
        ...[list({ tag: "b" }), list({}, { timeout: 70 }), list({}, { maxRetries: 0 })]
      ])
    )
    expect(requests).toHaveLength(5)
  })

  it("a shared request survives the abort of one caller and is aborted when its last caller aborts", async () => {
    const { client, requests, read } = makeCachingClient([neverResponds, () => ok("b")])
    const [first, last] = [new AbortController(), new AbortController()]
    const calls = [first, last].map(({ signal }) => client.prompts.get("p", { signal }))
    await flush()
    first.abort("one")
    expect(await captureError(calls[0]!)).toEqual(new AbortError("The call was aborted", { cause: "one" }))
    expect(requests[0]!.signal.aborted).toBe(false)
    last.abort()
    expect(await captureError(calls[1]!)).toBeInstanceOf(AbortError)
    expect([requests.length, requests[0]!.signal.aborted]).toEqual([1, true])
    expect(vi.getTimerCount()).toBe(0)
    expect(await read()).toEqual(["b", "fresh", 0])
  })

  it("a call that joins a request has its own timeout and sends a new request if the shared request times out", async () => {
    const { client, requests } = makeCachingClient([neverResponds], { timeout: 1_000 })
    const early = client.prompts.get("p").catch((error) => error)
    await advance(600)
    const late = client.prompts.get("p")
    await advance(400)
    expect(await early).toEqual(new TimeoutError("No result within 1000 ms"))
    // The shared request has timed out, but the late call has not.
    expect(requests).toHaveLength(2)
    expect(await settle(late)).toEqual({ error: new TimeoutError("No result within 1000 ms"), took: 600 })
    expect(vi.getTimerCount()).toBe(0)
  })

  it("a background refresh survives the abort of the calls that started and joined it", async () => {
    const { client, read, requests } = makeCachingClient([revalidatable("a"), neverResponds])
    await read()
    await advance(9_999)
    const [starter, joiner] = [new AbortController(), new AbortController()]
    expect(await read("p", { signal: starter.signal })).toEqual(["a", "stale", 0])
    starter.abort()
    await advance(1)
    const joined = client.prompts.get("p", { signal: joiner.signal, timeout: 10_000 })
    await flush()
    joiner.abort()
    expect(await captureError(joined)).toBeInstanceOf(AbortError)
    expect([requests.length, requests[1]!.signal.aborted]).toEqual([2, false])
  })

  it("a call does not share the text of a request that started more than ttl + maxStale before the call", async () => {
    const { client, pending } = makeManualClient({ cache: { ttl: 0, maxStale: 1_000 } })
    const early = client.prompts.get("p")
    await advance(1_000)
    const joined = client.prompts.get("p")
    await advance(1)
    const late = client.prompts.get("p")
    await flush()
    expect(pending).toHaveLength(1)
    pending[0]!("first")
    for (const call of [early, joined]) expect((await call).data.title).toBe("first")
    await flush()
    pending[1]!("second")
    expect((await late).data.title).toBe("second")
  })

  it("if two requests for a target overlap, the cache keeps the result of the request that started later", async () => {
    const { client, read, pending } = makeManualClient()
    const early = client.prompts.get("p")
    await advance(10)
    const late = client.prompts.get("p", { timeout: 5_000 })
    await flush()
    pending[1]!("new")
    expect((await late).data.title).toBe("new")
    pending[0]!("old")
    expect((await early).data.title).toBe("old")
    expect(await read()).toEqual(["new", "cached", 0])
  })

  it("a response that arrives after a 401 is not cached if its request was sent before the 401", async () => {
    const response = Promise.withResolvers<Response>()
    const { read, client, requests } = makeCachingClient([() => response.promise, unauthorized])
    const early = client.prompts.get("early")
    await flush()
    expect(await captureError(read("late"))).toMatchObject({ status: 401 })
    // A call after the 401 does not wait for the request that was sent before the 401.
    expect(await captureError(read("early"))).toMatchObject({ status: 401 })
    expect(requests).toHaveLength(3)
    response.resolve(ok("early"))
    expect((await early).data.title).toBe("early")
    expect(await captureError(read("early"))).toMatchObject({ status: 401 })
  })
})
