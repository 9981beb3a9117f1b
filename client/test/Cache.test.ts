import { describe, expect, it, vi } from "vitest"
import { AbortError, type ClientOptions, TimeoutError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  flush,
  jsonResponse,
  makeScriptedClient,
  neverResponds,
  type Request,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  useFakeTimeWithoutJitter,
  promptId,
  toId
} from "./support.ts"

useFakeTimeWithoutJitter()

const cache = { ttl: 1_000, maxStale: 9_000, maxEntries: 3 }

const ok = (title: string, etag = `"${title}"`) => jsonResponse(200, { data: { title } }, { etag })
const notModified = (etag: string) => new Response(null, { status: 304, headers: { etag } })

/** Responds 200 with a title and its ETag, or 304 if the request names that ETag. */
const revalidatable =
  (title: string): Responder =>
  ({ headers }) =>
    headers["if-none-match"] === `"${title}"` ? notModified(`"${title}"`) : ok(title)

const makeCachingClient = (responders: ReadonlyArray<Responder>, options: Partial<ClientOptions> = {}) => {
  const { client, requests } = makeScriptedClient(responders, { cache, ...options })
  /** Reads a prompt and returns its title, its source and the duration of the call. */
  const read = async (id = "p", call = {}) => {
    const outcome = await settle(client.prompts.get(toId(id), call))
    if ("error" in outcome) throw outcome.error
    return [outcome.value.data.title, outcome.value.source, outcome.took]
  }
  const sentEtags = () => requests.map(({ headers }) => headers["if-none-match"])
  return { client, requests, read, sentEtags }
}

describe("the source of a result", () => {
  it("source is a property of every result that JSON, spread and comparison do not show", async () => {
    for (const options of [{}, { cache }]) {
      const { client } = makeScriptedClient([() => ok("a")], options)
      const { value } = (await settle(client.prompts.get(promptId))) as { value: object }
      expect(value).toEqual({ data: { title: "a" } })
      expect(JSON.stringify(value)).toBe('{"data":{"title":"a"}}')
      expect(Object.keys({ ...value })).toEqual(["data"])
      expect(Object.getOwnPropertyDescriptor(value, "source")).toEqual({
        value: "fresh",
        enumerable: false,
        writable: false,
        configurable: false
      })
    }
  })

  it("every method returns source: fresh from the service, cached on the second call", async () => {
    const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const respondOk: Responder = ({ url }) =>
      jsonResponse(200, /(prompts|versions)$/.test(url) ? page : { data: {} })
    const { client, requests } = makeScriptedClient([respondOk], { cache: {} })
    for (const source of ["fresh", "cached"]) {
      const results = await Promise.all(allCalls.map((call) => call(client)))
      expect(results).toEqual(Array(5).fill(expect.objectContaining({ source })))
    }
    expect(requests).toHaveLength(5)
  })

  it("a caller may modify its result without changing the cache or other callers' results", async () => {
    const { client } = makeCachingClient([() => ok("a")])
    const results = await Promise.all([client.prompts.get(promptId), client.prompts.get(promptId)])
    results.push(await client.prompts.get(promptId))
    for (const result of results) {
      expect(result.data.title).toBe("a")
      Object.assign(result.data, { title: "changed" })
    }
  })

  it("a client without a cache sends a request for every call", async () => {
    const { client, requests } = makeScriptedClient([() => ok("a")])
    await settle(Promise.all([client.prompts.get(promptId), client.prompts.get(promptId)]))
    await settle(client.prompts.get(promptId))
    expect(requests.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, undefined, undefined])
  })
})

describe("the age of a result", () => {
  it("a result younger than ttl is returned from the cache without a request", async () => {
    const { read, requests } = makeCachingClient([revalidatable("a"), revalidatable("b")])
    expect(await read()).toEqual(["a", "fresh", 0])
    await advance(999)
    expect(await read()).toEqual(["a", "cached", 0])
    expect(requests).toHaveLength(1)
  })

  it("a result older than ttl is returned immediately and revalidated once in the background with its ETag", async () => {
    const { client, read, sentEtags } = makeCachingClient([revalidatable("a"), neverResponds])
    await read()
    await advance(1_000)
    const sources = await Promise.all(Array.from({ length: 100 }, () => client.prompts.get(promptId)))
    expect(sources.map(({ source }) => source)).toEqual(Array(100).fill("stale"))
    expect(sentEtags()).toEqual([undefined, '"a"'])
  })

  it("a background refresh resets the age, whether the service returns 200 or 304", async () => {
    const { read, sentEtags } = makeCachingClient([
      revalidatable("a"),
      revalidatable("a"),
      revalidatable("b"),
      revalidatable("b")
    ])
    await read()
    await advance(1_500)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(999)
    expect(await read()).toEqual(["a", "cached", 0])
    await advance(1)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "cached", 0])
    expect(sentEtags()).toEqual([undefined, '"a"', '"a"'])
  })

  it("a result older than ttl plus maxStale is requested again before it is returned", async () => {
    const { read, sentEtags } = makeCachingClient([
      revalidatable("a"),
      revalidatable("a"),
      revalidatable("b")
    ])
    await read()
    await advance(9_999)
    expect(await read("p")).toEqual(["a", "stale", 0])
    await flush()
    await advance(10_000)
    expect(await read()).toEqual(["b", "fresh", 0])
    expect(sentEtags()).toEqual([undefined, '"a"', '"a"'])
  })

  it("the age of a result counts from the start of its request", async () => {
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 800))
      return ok("a")
    }
    const { read } = makeCachingClient([slow, revalidatable("b")])
    expect(await read()).toEqual(["a", "fresh", 800])
    await advance(199)
    expect(await read()).toEqual(["a", "cached", 0])
    await advance(1)
    expect(await read()).toEqual(["a", "stale", 0])
  })

  it("ttl defaults to 30 s and maxStale to 300 s", async () => {
    const { read, requests } = makeCachingClient([revalidatable("a")], { cache: {} })
    await read()
    await advance(29_999)
    expect(await read()).toEqual(["a", "cached", 0])
    await advance(1)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(329_999)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(330_000)
    expect(await read()).toEqual(["a", "fresh", 0])
    expect(requests).toHaveLength(4)
  })

  it("a response without an ETag is cached and refreshed without If-None-Match", async () => {
    const { read, sentEtags } = makeCachingClient([
      () => jsonResponse(200, { data: { title: "a" } }),
      () => jsonResponse(200, { data: { title: "b" } })
    ])
    await read()
    await advance(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "cached", 0])
    expect(sentEtags()).toEqual([undefined, undefined])
  })

  it.each([{ ttl: -1 }, { ttl: 0.5 }, { maxStale: Number.POSITIVE_INFINITY }, { maxEntries: 0 }])(
    "the constructor throws a RangeError for the cache options %j",
    (bounds) => {
      expect(() => makeScriptedClient([neverResponds], { cache: bounds })).toThrow(RangeError)
    }
  )
})

const htmlPage = (status: number) => () =>
  new Response("<html>", { status, headers: { "content-type": "text/html" } })

const outages: Record<string, { readonly respond: Responder; readonly error: object }> = {
  "500": {
    respond: () => errorResponse(500, "INTERNAL_ERROR", "Internal error"),
    error: { name: "InternalServerError", status: 500 }
  },
  "502 with an HTML body": { respond: htmlPage(502), error: { name: "InvalidResponseError", status: 502 } },
  "503": { respond: serviceUnavailable, error: { name: "ServiceUnavailableError", status: 503 } },
  "429": { respond: () => rateLimited("1"), error: { name: "RateLimitedError", status: 429 } },
  "connection refused": { respond: connectionRefused, error: { name: "ConnectionError" } },
  "no response": { respond: neverResponds, error: { name: "TimeoutError" } },
  "402": {
    respond: () => errorResponse(402, "PAST_DUE", "Subscription is past due or over its limit"),
    error: { name: "PastDueError", status: 402 }
  },
  "200 with an HTML body": { respond: htmlPage(200), error: { name: "InvalidResponseError", status: 200 } },
  "a redirect": {
    respond: () => new Response(null, { status: 302, headers: { location: "http://login.test/" } }),
    error: { name: "InvalidResponseError", status: 302 }
  }
}

describe("the cache during an outage", () => {
  it.each(Object.keys(outages))(
    "stale results are returned immediately until maxStale, then the call fails: %s",
    async (kind) => {
      let down = false
      const { read } = makeCachingClient(
        [(request) => (down ? outages[kind]!.respond : revalidatable("a"))(request)],
        { timeout: 500 }
      )
      await read()
      down = true
      await advance(1_000)
      for (let age = 1_000; age < 10_000; age += 500) {
        expect(await read()).toEqual(["a", "stale", 0])
        await advance(500)
      }
      expect(await captureError(read())).toMatchObject(outages[kind]!.error)
      down = false
      await advance(2_000)
      expect(await read()).toEqual(["a", "fresh", 0])
    }
  )

  it.each(Object.keys(outages))(
    "a call without a cached result rejects with the outage's error, which is not cached: %s",
    async (kind) => {
      const { respond, error } = outages[kind]!
      const { read, requests } = makeCachingClient([respond], { timeout: 500, maxRetries: 0 })
      expect(await captureError(read())).toMatchObject(error)
      await advance(2_000)
      expect(await captureError(read())).toMatchObject(error)
      expect(requests).toHaveLength(2)
    }
  )

  it("after two failed calls without a cached result, there are pauses between the requests for this result", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient([
      ...Array(5).fill(connectionRefused),
      serviceUnavailable,
      revalidatable("a")
    ])
    const refused = { name: "ConnectionError" }
    expect(await captureError(read())).toMatchObject(refused)
    // The first call is retried twice. All later requests are single ones.
    expect(requests).toHaveLength(3)
    // The first pause is random, the further ones are the longest: 90 % of ttl.
    for (const [error, count, pause] of [
      [refused, 4, 450],
      [refused, 5, 900],
      [{ status: 503 }, 6, 900]
    ] as const) {
      expect(await captureError(read())).toMatchObject(error)
      expect(requests).toHaveLength(count)
      await advance(pause - 1)
      expect(await captureError(read())).toMatchObject(error)
      expect(requests).toHaveLength(count)
      await advance(1)
    }
    expect(await read()).toEqual(["a", "fresh", 0])
    expect(await read()).toEqual(["a", "cached", 0])
  })

  it("after one failed call, the next call sends a request", async () => {
    const { read } = makeCachingClient([connectionRefused, revalidatable("a")], { maxRetries: 0 })
    expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
    expect(await read()).toEqual(["a", "fresh", 0])
  })

  it.each([0, 5_000])(
    "a failed call for an expired result does not delay the next call, with maxStale %i",
    async (maxStale) => {
      vi.mocked(Math.random).mockReturnValue(0.5)
      const { read } = makeCachingClient([revalidatable("a"), connectionRefused, revalidatable("b")], {
        maxRetries: 0,
        cache: { ttl: 1_000, maxStale }
      })
      await read()
      await advance(1_000 + maxStale)
      expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
      expect(await read()).toEqual(["b", "fresh", 0])
    }
  )

  it("a failed refresh does not delay a call after the result has expired", async () => {
    vi.mocked(Math.random).mockReturnValue(0.9)
    const { read } = makeCachingClient([revalidatable("a"), connectionRefused, revalidatable("b")], {
      maxRetries: 0,
      cache: { ttl: 1_000, maxStale: 100 }
    })
    await read()
    await advance(1_050)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(50)
    expect(await read()).toEqual(["b", "fresh", 0])
  })

  it("failed calls delay only calls with the same target, until any call succeeds", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient(
      [...Array(4).fill(connectionRefused), revalidatable("a"), revalidatable("b")],
      { maxRetries: 0 }
    )
    for (const id of ["p", "q"]) {
      for (const _ of [1, 2, 3]) await captureError(read(id, { timeout: 70 }))
    }
    expect(requests).toHaveLength(4)
    expect(await captureError(read("p"))).toMatchObject({ name: "ConnectionError" })
    expect(requests).toHaveLength(4)
    expect(await read("r")).toEqual(["a", "fresh", 0])
    expect(await read("p")).toEqual(["b", "fresh", 0])
  })

  it("a call with an aborted signal rejects with an AbortError even in a pause", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read } = makeCachingClient([connectionRefused])
    for (const _ of [1, 2]) expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
    expect(await captureError(read("p", { signal: AbortSignal.abort() }))).toBeInstanceOf(AbortError)
  })

  it("long after a failure, a call is retried again", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient([connectionRefused])
    await captureError(read())
    await advance(3_000)
    await captureError(read())
    expect(requests).toHaveLength(6)
  })

  it("a 429 delays calls no longer than its Retry-After", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const limited = () => rateLimited("0")
    const { read } = makeCachingClient([limited, limited, limited, revalidatable("a")], { maxRetries: 0 })
    for (const _ of [1, 2, 3]) expect(await captureError(read())).toMatchObject({ status: 429 })
    expect(await read()).toEqual(["a", "fresh", 0])
  })

  it("a background refresh retries like any call, and only one refresh runs at a time", async () => {
    const { read, requests } = makeCachingClient([
      revalidatable("a"),
      serviceUnavailable,
      serviceUnavailable,
      revalidatable("b")
    ])
    await read()
    await advance(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(250)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(500)
    expect(requests).toHaveLength(4)
    expect(await read()).toEqual(["b", "cached", 0])
  })
})

describe("cache eviction by errors", () => {
  const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
  const makeService = () => {
    const gone = new Map<string, number>()
    const respondByPath: Responder = ({ url, headers }: Request) => {
      const path = new URL(url).pathname.slice("/api/v1/prompts".length)
      const status = gone.get(path)
      if (status !== undefined) return errorResponse(status, "CODE", "No")
      return path === "" ? jsonResponse(200, page) : revalidatable(path)({ headers } as Request)
    }
    return { gone, ...makeCachingClient([respondByPath]) }
  }

  it("a 404 evicts only its own entry", async () => {
    const { gone, read, requests } = makeService()
    await read("a")
    await read("b")
    await advance(1_000)
    gone.set("/a", 404)
    expect(await read("a")).toEqual(["/a", "stale", 0])
    await flush()
    expect(await captureError(read("a"))).toMatchObject({ status: 404 })
    expect(await read("b")).toEqual(["/b", "stale", 0])
    await flush()
    expect(await read("b")).toEqual(["/b", "cached", 0])
    gone.clear()
    expect(await read("a")).toEqual(["/a", "fresh", 0])
    expect(requests.at(-1)!.headers["if-none-match"]).toBeUndefined()
  })

  it.each([401, 403])("a %i clears the cache, because it concerns the key", async (status) => {
    const { gone, read, client } = makeService()
    await read("a")
    await advance(500)
    await read("b")
    await settle(client.prompts.list())
    await advance(500)
    for (const path of ["", "/a", "/b"]) gone.set(path, status)
    expect(await read("a")).toEqual(["/a", "stale", 0])
    await flush()
    for (const id of ["a", "b"]) expect(await captureError(read(id))).toMatchObject({ status })
    expect(await captureError(client.prompts.list())).toMatchObject({ status })
  })

  it.each([401, 403, 404])("a %i with an HTML body evicts like an error of the service", async (status) => {
    const page = () => new Response("<html>", { status, headers: { "content-type": "text/html" } })
    const { read, sentEtags } = makeCachingClient([revalidatable("a"), page, revalidatable("b")])
    await read()
    await advance(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "fresh", 0])
    expect(sentEtags()).toEqual([undefined, '"a"', undefined])
  })

  it("a response that arrives after a 401 is not cached if its request was sent before", async () => {
    let respond: (response: Response) => void = () => {}
    const { read, client, requests } = makeCachingClient([
      () => new Promise<Response>((resolve) => (respond = resolve)),
      () => errorResponse(401, "UNAUTHORIZED", "API key has been revoked")
    ])
    const early = client.prompts.get("early")
    await flush()
    expect(await captureError(read("late"))).toMatchObject({ status: 401 })
    // A call after the 401 does not wait for the request that was sent before.
    expect(await captureError(read("early"))).toMatchObject({ status: 401 })
    expect(requests).toHaveLength(3)
    respond(ok("early"))
    expect((await early).data.title).toBe("early")
    expect(await captureError(read("early"))).toMatchObject({ status: 401 })
  })
})

describe("concurrent reads of the same target", () => {
  it("1,000 concurrent calls share one request, and each gets its own object", async () => {
    let respond: (response: Response) => void = () => {}
    const { client, requests } = makeCachingClient([
      () => new Promise<Response>((resolve) => (respond = resolve))
    ])
    const reads = Array.from({ length: 1_000 }, () => client.prompts.get(promptId))
    await flush()
    respond(ok("a"))
    const results = await Promise.all(reads)
    expect(requests).toHaveLength(1)
    expect(new Set(results).size).toBe(1_000)
    expect(results.every(({ data, source }) => data.title === "a" && source === "fresh")).toBe(true)
  })

  it("all callers of a shared request get its error, and the next call sends a new request", async () => {
    const { client, requests } = makeCachingClient([
      () => errorResponse(404, "NOT_FOUND", "Prompt not found")
    ])
    const results = await Promise.allSettled([1, 2, 3].map(() => client.prompts.get(promptId)))
    expect(results.map((result) => result.status)).toEqual(Array(3).fill("rejected"))
    expect(requests).toHaveLength(1)
    expect(await captureError(client.prompts.get(promptId))).toMatchObject({ status: 404 })
    expect(requests).toHaveLength(2)
  })

  it("calls share a request only if query, timeout and maxRetries are equal", async () => {
    const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const { client, requests } = makeCachingClient([() => jsonResponse(200, { ...page })])
    await settle(
      Promise.all([
        client.prompts.list(),
        client.prompts.list({ page: undefined }),
        client.prompts.list({ tag: "a", page: 1 }),
        client.prompts.list({ page: 1, tag: "a" }),
        client.prompts.list({ tag: "b" }),
        client.prompts.list({}, { timeout: 30_000, maxRetries: 2 }),
        client.prompts.list({}, { timeout: 70 }),
        client.prompts.list({}, { maxRetries: 0 })
      ])
    )
    expect(requests).toHaveLength(5)
  })

  it("a shared request survives the abort of one caller and is aborted with its last caller", async () => {
    let respond: (response: Response) => void = () => {}
    const { client, requests } = makeCachingClient([
      ({ signal }) =>
        new Promise<Response>((resolve, reject) => {
          respond = resolve
          signal.addEventListener("abort", () => reject(signal.reason))
        }),
      () => ok("b")
    ])
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
    const one = client.prompts.get(promptId, { signal: first.signal })
    const two = client.prompts.get(promptId, { signal: second.signal })
    await flush()
    first.abort("one")
    expect(await captureError(one)).toEqual(new AbortError("The call was aborted", { cause: "one" }))
    expect(requests[0]!.signal.aborted).toBe(false)
    respond(ok("a"))
    expect((await two).data.title).toBe("a")

    const alone = makeScriptedClient([neverResponds, () => ok("c")], { cache })
    const call = alone.client.prompts.get(promptId, { signal: third.signal })
    await flush()
    third.abort()
    expect(await captureError(call)).toBeInstanceOf(AbortError)
    await flush()
    expect(alone.requests[0]!.signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
    expect((await alone.client.prompts.get(promptId)).data.title).toBe("c")
  })

  it("a call never joins a request that was aborted by its last caller", async () => {
    for (let turns = 0; turns < 20; turns++) {
      const { client } = makeCachingClient([neverResponds, revalidatable("a")])
      const controller = new AbortController()
      const first = client.prompts.get(promptId, { signal: controller.signal })
      first.catch(() => {})
      await flush()
      controller.abort()
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const second = client.prompts.get(promptId, { timeout: 30_000 })
      expect(
        await settle(second).then((outcome) => "error" in outcome && (outcome.error as Error).name)
      ).not.toBe("AbortError")
    }
  })

  it("a call that joins a request has its own timeout and sends a new request if the shared one times out", async () => {
    const { client, requests } = makeCachingClient([neverResponds, neverResponds, () => ok("a")], {
      timeout: 1_000
    })
    const early = client.prompts.get(promptId).catch((error) => error)
    await advance(600)
    const late = client.prompts.get(promptId)
    await advance(400)
    expect(await early).toEqual(new TimeoutError("No result within 1000 ms"))
    // The shared request has timed out, the late call has not.
    expect(requests).toHaveLength(2)
    expect(await settle(late)).toEqual({ error: new TimeoutError("No result within 1000 ms"), took: 600 })
    expect((await client.prompts.get(promptId)).data.title).toBe("a")
    expect(vi.getTimerCount()).toBe(0)
  })

  it("after a failed background refresh, the next one is a single request, once most of ttl has passed", async () => {
    const { read, requests } = makeCachingClient([
      () => ok("a"),
      ...Array(4).fill(connectionRefused),
      () => ok("b")
    ])
    await read()
    await advance(1_000)
    // The first refresh is retried twice.
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(2_000)
    expect(requests).toHaveLength(4)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(requests).toHaveLength(5)
    await advance(590)
    for (const id of ["p", "p"]) expect(await read(id)).toEqual(["a", "stale", 0])
    expect(requests).toHaveLength(5)
    await advance(310)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(requests).toHaveLength(6)
    expect(await read()).toEqual(["b", "cached", 0])
  })

  it("a background refresh survives the abort of the call that started it", async () => {
    const { client, read, requests } = makeCachingClient([revalidatable("a"), neverResponds])
    await read()
    await advance(1_000)
    const controller = new AbortController()
    const { source } = await client.prompts.get(promptId, { signal: controller.signal })
    controller.abort()
    await advance(1_000)
    expect(source).toBe("stale")
    expect(requests[1]!.signal.aborted).toBe(false)
  })

  it("a background refresh survives the abort of a call that joined it", async () => {
    const { client, read, requests } = makeCachingClient([revalidatable("a"), neverResponds])
    await read()
    await advance(9_999)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(1)
    const controller = new AbortController()
    const joined = client.prompts.get(promptId, { signal: controller.signal })
    await flush()
    controller.abort()
    expect(await captureError(joined)).toBeInstanceOf(AbortError)
    expect(requests).toHaveLength(2)
    expect(requests[1]!.signal.aborted).toBe(false)
  })

  it("a call with an aborted signal rejects with an AbortError even if its result is cached", async () => {
    const { client, read } = makeCachingClient([revalidatable("a")])
    await read()
    expect(await captureError(client.prompts.get(promptId, { signal: AbortSignal.abort() }))).toBeInstanceOf(
      AbortError
    )
  })
})

describe("the contents of the cache", () => {
  it("a cache with maxEntries entries evicts the least recently used one", async () => {
    const { read, requests } = makeCachingClient([({ url }) => ok(url.slice(-1))])
    for (const id of ["a", "b", "c"]) expect(await read(id)).toEqual([id, "fresh", 0])
    expect(await read("a")).toEqual(["a", "cached", 0])
    expect(await read("d")).toEqual(["d", "fresh", 0])
    for (const id of ["a", "c", "d"]) expect(await read(id)).toEqual([id, "cached", 0])
    expect(await read("b")).toEqual(["b", "fresh", 0])
    expect(requests).toHaveLength(5)
  })

  it("a call with headers bypasses the cache, unless they only identify the request", async () => {
    const { read, requests, sentEtags } = makeCachingClient([
      revalidatable("a"),
      () => ok("b"),
      revalidatable("a")
    ])
    await read()
    expect(await read("p", { headers: { "Cache-Control": "no-cache" } })).toEqual(["b", "fresh", 0])
    expect(await read()).toEqual(["a", "cached", 0])
    for (const name of ["X-Request-Id", "traceparent", "tracestate", "baggage", "User-Agent"]) {
      expect(await read("p", { headers: { [name]: "mine" } })).toEqual(["a", "cached", 0])
    }
    expect(requests).toHaveLength(2)
    expect(await read("q", { headers: { "x-request-id": "mine" } })).toEqual(["a", "fresh", 0])
    expect(requests[2]!.headers["x-request-id"]).toBe("mine")
    expect(sentEtags()).toEqual([undefined, undefined, undefined])
  })

  it("of two overlapping requests, the result of the one that started later stays cached", async () => {
    const respond: Array<(response: Response) => void> = []
    const { client, read } = makeCachingClient([
      () => new Promise<Response>((resolve) => respond.push(resolve))
    ])
    const early = client.prompts.get(promptId)
    await advance(10)
    const late = client.prompts.get(promptId, { timeout: 5_000 })
    await flush()
    respond[1]!(ok("new"))
    expect((await late).data.title).toBe("new")
    respond[0]!(ok("old"))
    expect((await early).data.title).toBe("old")
    expect(await read()).toEqual(["new", "cached", 0])
  })
})
