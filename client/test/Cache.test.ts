import { describe, expect, it } from "vitest"
import {
  advance,
  allCalls,
  captureError,
  errorResponse,
  flush,
  jsonResponse,
  makeScriptedClient,
  page,
  type Responder,
  useFakeTimeWithoutJitter,
  promptId,
  toId
} from "./support.ts"
import { makeCachingClient, ok, revalidatable } from "./cachingClient.ts"

useFakeTimeWithoutJitter()

describe("the source of a result", () => {
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
    const results = await Promise.all([client.prompts.get(promptId), client.prompts.get(promptId)])
    results.push(await client.prompts.get(promptId))
    expect(results.map(({ source }) => source)).toEqual(["fresh", "fresh", "cached"])
    for (const result of results) {
      expect(result.data.title).toBe("a")
      Object.assign(result.data, { title: "changed" })
    }
  })
})

describe("the age of a result", () => {
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
})

describe("cache eviction by errors", () => {
  it.each([401, 403, 404])(
    "a %i with an HTML body evicts the cached result, as an error response of the service does",
    async (status) => {
      const { read, sentEtags } = makeCachingClient([revalidatable("a"), page(status), revalidatable("b")])
      await read()
      await advance(1_000)
      expect(await read()).toEqual(["a", "stale", 0])
      await flush()
      expect(await read()).toEqual(["b", "fresh", 0])
      expect(sentEtags()).toEqual([undefined, '"a"', undefined])
    }
  )

  it("a response that arrives after a 401 is not cached if its request was sent before the 401", async () => {
    const response = Promise.withResolvers<Response>()
    const { read, client, requests } = makeCachingClient([
      () => response.promise,
      () => errorResponse(401, "UNAUTHORIZED", "API key has been revoked")
    ])
    const early = client.prompts.get(toId("early"))
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

describe("the contents of the cache", () => {
  it("a cache that contains maxEntries entries evicts the least recently used entry for a new entry", async () => {
    const { read, requests } = makeCachingClient([({ url }) => ok(url.slice(-1))])
    for (const id of ["a", "b", "c"]) expect(await read(id)).toEqual([id, "fresh", 0])
    expect(await read("a")).toEqual(["a", "cached", 0])
    expect(await read("d")).toEqual(["d", "fresh", 0])
    for (const id of ["a", "c", "d"]) expect(await read(id)).toEqual([id, "cached", 0])
    expect(await read("b")).toEqual(["b", "fresh", 0])
    expect(requests).toHaveLength(5)
  })

  it("a call with headers bypasses the cache, unless the headers only identify the request", async () => {
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

  it("if two requests for a target overlap, the cache keeps the result of the request that started later", async () => {
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
