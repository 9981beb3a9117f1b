import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { AbortError, type ClientOptions, TimeoutError } from "../src/index.ts"
import {
  calls,
  failure,
  fakeTime,
  flush,
  json,
  limited,
  pass,
  type Reply,
  type Request,
  refusal,
  refused,
  scripted,
  settle,
  silent,
  unavailable
} from "./support.ts"

beforeEach(() => {
  fakeTime()
  vi.spyOn(Math, "random").mockReturnValue(0)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

const cache = { ttl: 1_000, maxStale: 9_000, maxEntries: 3 }

const found = (title: string, etag = `"${title}"`) => json(200, { data: { title } }, { etag })
const notModified = (etag: string) => new Response(null, { status: 304, headers: { etag } })

/** Answers with what is current, or that it is what the request names. */
const current =
  (title: string): Reply =>
  ({ headers }) =>
    headers["if-none-match"] === `"${title}"` ? notModified(`"${title}"`) : found(title)

const cached = (replies: ReadonlyArray<Reply>, options: Partial<ClientOptions> = {}) => {
  const { client, requests } = scripted(replies, { cache, ...options })
  /** A read as the caller sees it: what, from where, after how long. */
  const read = async (id = "p", call = {}) => {
    const ended = await settle(client.prompts.get(id, call))
    if ("error" in ended) throw ended.error
    return [ended.value.data.title, ended.value.source, ended.took]
  }
  const asked = () => requests.map(({ headers }) => headers["if-none-match"])
  return { client, requests, read, asked }
}

describe("a result", () => {
  it("tells where it came from, in no way that changes the envelope", async () => {
    for (const options of [{}, { cache }]) {
      const { client } = scripted([() => found("a")], options)
      const { value } = (await settle(client.prompts.get("p"))) as { value: object }
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

  it("tells of every call", async () => {
    const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const answer: Reply = ({ url }) => json(200, /(prompts|versions)$/.test(url) ? page : { data: {} })
    const { client, requests } = scripted([answer], { cache: {} })
    for (const source of ["fresh", "cached"]) {
      const results = await Promise.all(calls.map((call) => call(client)))
      expect(results).toEqual(Array(5).fill(expect.objectContaining({ source })))
    }
    expect(requests).toHaveLength(5)
  })

  it("is its caller's own to change", async () => {
    const { client } = cached([() => found("a")])
    const results = await Promise.all([client.prompts.get("p"), client.prompts.get("p")])
    results.push(await client.prompts.get("p"))
    for (const result of results) {
      expect(result.data.title).toBe("a")
      Object.assign(result.data, { title: "changed" })
    }
  })

  it("without a cache is asked for each time", async () => {
    const { client, requests } = scripted([() => found("a")])
    await settle(Promise.all([client.prompts.get("p"), client.prompts.get("p")]))
    await settle(client.prompts.get("p"))
    expect(requests.map(({ headers }) => headers["if-none-match"])).toEqual([undefined, undefined, undefined])
  })
})

describe("the age of a result", () => {
  it("up to ttl, asks nothing", async () => {
    const { read, requests } = cached([current("a"), current("b")])
    expect(await read()).toEqual(["a", "fresh", 0])
    await pass(999)
    expect(await read()).toEqual(["a", "cached", 0])
    expect(requests).toHaveLength(1)
  })

  it("past ttl, is served at once and asked for in the background, once, with its ETag", async () => {
    const { client, read, asked } = cached([current("a"), silent])
    await read()
    await pass(1_000)
    const sources = await Promise.all(Array.from({ length: 100 }, () => client.prompts.get("p")))
    expect(sources.map(({ source }) => source)).toEqual(Array(100).fill("stale"))
    expect(asked()).toEqual([undefined, '"a"'])
  })

  it("starts anew with what the background brings, or with its confirmation", async () => {
    const { read, asked } = cached([current("a"), current("a"), current("b"), current("b")])
    await read()
    await pass(1_500)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(999)
    expect(await read()).toEqual(["a", "cached", 0])
    await pass(1)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "cached", 0])
    expect(asked()).toEqual([undefined, '"a"', '"a"'])
  })

  it("past ttl and maxStale, is asked for before it is served again", async () => {
    const { read, asked } = cached([current("a"), current("a"), current("b")])
    await read()
    await pass(9_999)
    expect(await read("p")).toEqual(["a", "stale", 0])
    await flush()
    await pass(10_000)
    expect(await read()).toEqual(["b", "fresh", 0])
    expect(asked()).toEqual([undefined, '"a"', '"a"'])
  })

  it("counts from when its reading began", async () => {
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 800))
      return found("a")
    }
    const { read } = cached([slow, current("b")])
    expect(await read()).toEqual(["a", "fresh", 800])
    await pass(199)
    expect(await read()).toEqual(["a", "cached", 0])
    await pass(1)
    expect(await read()).toEqual(["a", "stale", 0])
  })

  it("has the service's own bounds unless told", async () => {
    const { read, requests } = cached([current("a")], { cache: {} })
    await read()
    await pass(29_999)
    expect(await read()).toEqual(["a", "cached", 0])
    await pass(1)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(329_999)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(330_000)
    expect(await read()).toEqual(["a", "fresh", 0])
    expect(requests).toHaveLength(4)
  })

  it("needs no ETag", async () => {
    const { read, asked } = cached([
      () => json(200, { data: { title: "a" } }),
      () => json(200, { data: { title: "b" } })
    ])
    await read()
    await pass(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "cached", 0])
    expect(asked()).toEqual([undefined, undefined])
  })

  it.each([{ ttl: -1 }, { ttl: 0.5 }, { maxStale: Number.POSITIVE_INFINITY }, { maxEntries: 0 }])(
    "can't be bounded by %j",
    (bounds) => {
      expect(() => scripted([silent], { cache: bounds })).toThrow(RangeError)
    }
  )
})

const outages: Record<string, Reply> = {
  "500": () => refusal(500, "INTERNAL_ERROR", "Internal error"),
  "502 in HTML": () => new Response("<html>", { status: 502, headers: { "content-type": "text/html" } }),
  "503": unavailable,
  "429": () => limited("1"),
  "connection refused": refused,
  silence: silent,
  "402": () => refusal(402, "PAST_DUE", "Subscription is past due or over its limit"),
  "another page": () => new Response("<html>", { headers: { "content-type": "text/html" } }),
  "a redirect": () => new Response(null, { status: 302, headers: { location: "http://login.test/" } })
}

describe("while the service fails", () => {
  it.each(Object.keys(outages))("stale results are served until maxStale, at once: %s", async (kind) => {
    let down = false
    const { read } = cached([(request) => (down ? outages[kind]! : current("a"))(request)], { timeout: 500 })
    await read()
    down = true
    await pass(1_000)
    for (let age = 1_000; age < 10_000; age += 500) {
      expect(await read()).toEqual(["a", "stale", 0])
      await pass(500)
    }
    expect(await failure(read())).toHaveProperty("name")
    down = false
    await pass(2_000)
    expect(await read()).toEqual(["a", "fresh", 0])
  })

  it("and until now never answered, it is told so", async () => {
    for (const outage of Object.values(outages)) {
      const { read, requests } = cached([outage], { timeout: 500, maxRetries: 0 })
      expect(await failure(read())).toHaveProperty("name")
      await pass(2_000)
      expect(await failure(read())).toHaveProperty("name")
      expect(requests).toHaveLength(2)
    }
  })

  it("the background tries again as any call, and only once at a time", async () => {
    const { read, requests } = cached([current("a"), unavailable, unavailable, current("b")])
    await read()
    await pass(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(250)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(500)
    expect(requests).toHaveLength(4)
    expect(await read()).toEqual(["b", "cached", 0])
  })
})

describe("a refusal", () => {
  const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
  const world = () => {
    const gone = new Map<string, number>()
    const answer: Reply = ({ url, headers }: Request) => {
      const path = new URL(url).pathname.slice("/api/v1/prompts".length)
      const status = gone.get(path)
      if (status !== undefined) return refusal(status, "CODE", "No")
      return path === "" ? json(200, page) : current(path)({ headers } as Request)
    }
    return { gone, ...cached([answer]) }
  }

  it("of 404 drops what it is about, and nothing else", async () => {
    const { gone, read, requests } = world()
    await read("a")
    await read("b")
    await pass(1_000)
    gone.set("/a", 404)
    expect(await read("a")).toEqual(["/a", "stale", 0])
    await flush()
    expect(await failure(read("a"))).toMatchObject({ status: 404 })
    expect(await read("b")).toEqual(["/b", "stale", 0])
    await flush()
    expect(await read("b")).toEqual(["/b", "cached", 0])
    gone.clear()
    expect(await read("a")).toEqual(["/a", "fresh", 0])
    expect(requests.at(-1)!.headers["if-none-match"]).toBeUndefined()
  })

  it.each([401, 403])("of %i drops everything: it is about the key", async (status) => {
    const { gone, read, client } = world()
    await read("a")
    await pass(500)
    await read("b")
    await settle(client.prompts.list())
    await pass(500)
    for (const path of ["", "/a", "/b"]) gone.set(path, status)
    expect(await read("a")).toEqual(["/a", "stale", 0])
    await flush()
    for (const id of ["a", "b"]) expect(await failure(read(id))).toMatchObject({ status })
    expect(await failure(client.prompts.list())).toMatchObject({ status })
  })

  it.each([401, 403, 404])("of %i counts whatever its body", async (status) => {
    const page = () => new Response("<html>", { status, headers: { "content-type": "text/html" } })
    const { read, asked } = cached([current("a"), page, current("b")])
    await read()
    await pass(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await flush()
    expect(await read()).toEqual(["b", "fresh", 0])
    expect(asked()).toEqual([undefined, '"a"', undefined])
  })

  it("drops what was read before it and comes in after it, too", async () => {
    let answer: (response: Response) => void = () => {}
    const { read, client } = cached([
      () => new Promise<Response>((resolve) => (answer = resolve)),
      () => refusal(401, "UNAUTHORIZED", "API key has been revoked")
    ])
    const early = client.prompts.get("early")
    await flush()
    expect(await failure(read("late"))).toMatchObject({ status: 401 })
    answer(found("early"))
    expect((await early).data.title).toBe("early")
    expect(await failure(read("early"))).toMatchObject({ status: 401 })
  })
})

describe("many reads of the same", () => {
  it("are one request", async () => {
    let answer: (response: Response) => void = () => {}
    const { client, requests } = cached([() => new Promise<Response>((resolve) => (answer = resolve))])
    const reads = Array.from({ length: 1_000 }, () => client.prompts.get("p"))
    await flush()
    answer(found("a"))
    const results = await Promise.all(reads)
    expect(requests).toHaveLength(1)
    expect(new Set(results).size).toBe(1_000)
    expect(results.every(({ data, source }) => data.title === "a" && source === "fresh")).toBe(true)
  })

  it("fail as one", async () => {
    const { client, requests } = cached([() => refusal(404, "NOT_FOUND", "Prompt not found")])
    const results = await Promise.allSettled([1, 2, 3].map(() => client.prompts.get("p")))
    expect(results.map((result) => result.status)).toEqual(Array(3).fill("rejected"))
    expect(requests).toHaveLength(1)
    expect(await failure(client.prompts.get("p"))).toMatchObject({ status: 404 })
    expect(requests).toHaveLength(2)
  })

  it("are apart for each question, and for each way to wait for it", async () => {
    const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const { client, requests } = cached([() => json(200, { ...page })])
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

  it("survive the abort of any of their callers, and end with the last", async () => {
    let answer: (response: Response) => void = () => {}
    const { client, requests } = cached([
      ({ signal }) =>
        new Promise<Response>((resolve, reject) => {
          answer = resolve
          signal.addEventListener("abort", () => reject(signal.reason))
        }),
      () => found("b")
    ])
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
    const one = client.prompts.get("p", { signal: first.signal })
    const two = client.prompts.get("p", { signal: second.signal })
    await flush()
    first.abort("one")
    expect(await failure(one)).toEqual(new AbortError("The call was aborted", { cause: "one" }))
    expect(requests[0]!.signal.aborted).toBe(false)
    answer(found("a"))
    expect((await two).data.title).toBe("a")

    const alone = scripted([silent, () => found("c")], { cache })
    const call = alone.client.prompts.get("p", { signal: third.signal })
    await flush()
    third.abort()
    expect(await failure(call)).toBeInstanceOf(AbortError)
    await flush()
    expect(alone.requests[0]!.signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
    expect((await alone.client.prompts.get("p")).data.title).toBe("c")
  })

  it("never join one that was ended with its last caller", async () => {
    for (let turns = 0; turns < 20; turns++) {
      const { client } = cached([silent, current("a")])
      const controller = new AbortController()
      const first = client.prompts.get("p", { signal: controller.signal })
      first.catch(() => {})
      await flush()
      controller.abort()
      for (let turn = 0; turn < turns; turn++) await Promise.resolve()
      const second = client.prompts.get("p", { timeout: 30_000 })
      expect(await settle(second).then((ended) => "error" in ended && (ended.error as Error).name)).not.toBe(
        "AbortError"
      )
    }
  })

  it("each have their own time", async () => {
    const { client, requests } = cached([silent, silent, () => found("a")], { timeout: 1_000 })
    const early = client.prompts.get("p").catch((error) => error)
    await pass(600)
    const late = client.prompts.get("p")
    await pass(400)
    expect(await early).toEqual(new TimeoutError("No result within 1000 ms"))
    // What the late one joined has ended; its own time has not.
    expect(requests).toHaveLength(2)
    expect(await settle(late)).toEqual({ error: new TimeoutError("No result within 1000 ms"), took: 600 })
    expect((await client.prompts.get("p")).data.title).toBe("a")
    expect(vi.getTimerCount()).toBe(0)
  })

  it("in the background hang on no caller", async () => {
    const { client, read, requests } = cached([current("a"), silent])
    await read()
    await pass(1_000)
    const controller = new AbortController()
    const { source } = await client.prompts.get("p", { signal: controller.signal })
    controller.abort()
    await pass(1_000)
    expect(source).toBe("stale")
    expect(requests[1]!.signal.aborted).toBe(false)
  })

  it("in the background outlive a caller who joins them and leaves", async () => {
    const { client, read, requests } = cached([current("a"), silent])
    await read()
    await pass(9_999)
    expect(await read()).toEqual(["a", "stale", 0])
    await pass(1)
    const controller = new AbortController()
    const joined = client.prompts.get("p", { signal: controller.signal })
    await flush()
    controller.abort()
    expect(await failure(joined)).toBeInstanceOf(AbortError)
    expect(requests).toHaveLength(2)
    expect(requests[1]!.signal.aborted).toBe(false)
  })

  it("that are aborted already are refused, cached or not", async () => {
    const { client, read } = cached([current("a")])
    await read()
    expect(await failure(client.prompts.get("p", { signal: AbortSignal.abort() }))).toBeInstanceOf(AbortError)
  })
})

describe("the cache", () => {
  it("holds maxEntries, and drops what was not read for longest", async () => {
    const { read, requests } = cached([({ url }) => found(url.slice(-1))])
    for (const id of ["a", "b", "c"]) expect(await read(id)).toEqual([id, "fresh", 0])
    expect(await read("a")).toEqual(["a", "cached", 0])
    expect(await read("d")).toEqual(["d", "fresh", 0])
    for (const id of ["a", "c", "d"]) expect(await read(id)).toEqual([id, "cached", 0])
    expect(await read("b")).toEqual(["b", "fresh", 0])
    expect(requests).toHaveLength(5)
  })

  it("is passed by where a call's headers could change the answer", async () => {
    const { read, requests, asked } = cached([current("a"), () => found("b"), current("a")])
    await read()
    expect(await read("p", { headers: { "Cache-Control": "no-cache" } })).toEqual(["b", "fresh", 0])
    expect(await read()).toEqual(["a", "cached", 0])
    for (const name of ["X-Request-Id", "traceparent", "tracestate", "baggage", "User-Agent"]) {
      expect(await read("p", { headers: { [name]: "mine" } })).toEqual(["a", "cached", 0])
    }
    expect(requests).toHaveLength(2)
    expect(await read("q", { headers: { "x-request-id": "mine" } })).toEqual(["a", "fresh", 0])
    expect(requests[2]!.headers["x-request-id"]).toBe("mine")
    expect(asked()).toEqual([undefined, undefined, undefined])
  })

  it("keeps the later of two readings that overtake each other", async () => {
    const answers: Array<(response: Response) => void> = []
    const { client, read } = cached([() => new Promise<Response>((resolve) => answers.push(resolve))])
    const early = client.prompts.get("p")
    await pass(10)
    const late = client.prompts.get("p", { timeout: 5_000 })
    await flush()
    answers[1]!(found("new"))
    expect((await late).data.title).toBe("new")
    answers[0]!(found("old"))
    expect((await early).data.title).toBe("old")
    expect(await read()).toEqual(["new", "cached", 0])
  })
})
