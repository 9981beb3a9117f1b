import { expect, it, vi } from "vitest"
import { AbortError, type ClientOptions, TimeoutError } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
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
  textResponse,
  useFakeTime
} from "./support.ts"

// `cacheModel.test.ts` checks all sequences of calls that do not overlap.

useFakeTime(0)

const makeCachingClient = (script: ReadonlyArray<Responder>, options: ClientOptions = {}) =>
  makeScriptedClient(script, { cache: { ttl: 1_000, maxStale: 9_000, maxEntries: 3 }, ...options })

/** Makes a client. The test responds to the requests of the client, in any order. */
const makeManualClient = (options: ClientOptions = {}) => {
  const pending: Array<(text: string) => void> = []
  const respondLater = () =>
    new Promise<Response>((resolve) => pending.push((text) => resolve(textResponse(text))))
  return { ...makeCachingClient([respondLater], options), pending }
}

it("the source of a result is fresh on the first call of a method and cached on the second call", async () => {
  const service = new FakeService({ prompts: [{ name: "p", content: "a" }] })
  const client = service.connect({ cache: {} })
  for (const source of ["fresh", "cached"])
    for (const call of allCalls) expect(await call(client)).toMatchObject({ source })
  expect(service.requests).toHaveLength(5)
})

it("a caller can modify its result without changing the cache or the results of other callers", async () => {
  const { client } = makeCachingClient([() => textResponse("a")])
  const read = () => client.prompts.getResolved("p")
  for (const result of [...(await Promise.all([read(), read()])), await read(), await read()]) {
    expect(result.data.resolved_content).toBe("a")
    Object.assign(result.data, { resolved_content: "changed" })
  }
})

it("a cache that contains maxEntries entries evicts the least recently used entry for a new entry", async () => {
  const { read } = makeCachingClient([() => textResponse("a")])
  const readAll = async (...names: ReadonlyArray<string>) => {
    const sources: Array<string> = []
    for (const name of names) sources.push((await read({}, name)).slice(3, -1))
    return sources.join(" ")
  }
  expect(await readAll("a", "b", "c", "a", "d")).toBe("fresh fresh fresh cached fresh")
  expect(await readAll("a", "c", "d", "b")).toBe("cached cached cached fresh")
})

it("a call with headers bypasses the cache, unless it has only User-Agent, X-Request-Id and trace headers", async () => {
  const { read, requests } = makeCachingClient([() => textResponse("a", { etag: '"a"' })])
  await read()
  expect(await read({ headers: { "Cache-Control": "no-cache" } })).toBe("a (fresh)")
  expect(requests[1]!.headers["if-none-match"]).toBeUndefined()
  for (const name of ["X-Request-Id", "traceparent", "tracestate", "baggage", "User-Agent"])
    expect(await read({ headers: { [name]: "mine" } })).toBe("a (cached)")
  expect(await read({ headers: { "x-request-id": "mine" } }, "q")).toBe("a (fresh)")
  expect(requests[2]!.headers["x-request-id"]).toBe("mine")
  expect(requests).toHaveLength(3)
})

it("the age of a result counts from the start of its request", async () => {
  const { client, read, pending } = makeManualClient()
  const call = client.prompts.getResolved("p")
  await advance(800)
  pending[0]!("a")
  expect((await call).age).toBe(800)
  await advance(199)
  expect(await read()).toBe("a (cached)")
  await advance(1)
  expect(await read()).toBe("a (stale)")
})

it("if the machine is suspended for an hour during a request, the client discards the response and repeats the request", async () => {
  const { client, read, pending } = makeManualClient()
  const call = client.prompts.getResolved("p")
  await flush()
  vi.setSystemTime(Date.now() + 3_600_000)
  pending[0]!("an hour old")
  await flush()
  pending[1]!("current")
  expect(await call).toMatchObject({ data: { resolved_content: "current" }, source: "fresh", age: 0 })
  expect(await read()).toBe("current (cached)")
})

it("calls share a request only if query, timeout and maxRetries are equal", async () => {
  const meta = { page: 1, per_page: 20, total: 0 }
  const { client, requests } = makeCachingClient([() => jsonResponse(200, { data: [], meta })])
  const { list } = client.prompts
  await settle(
    Promise.all([
      ...[list(), list({ page: undefined }), list({}, { timeout: 30_000, maxRetries: 2 })],
      ...[list({ tag: "a&b =ä", page: 1 }), list({ page: 1, tag: "a&b =ä" })],
      ...[list({ tag: "b" }), list({}, { timeout: 70 }), list({}, { maxRetries: 0 })]
    ])
  )
  const queries = ["", "?page=1&tag=a%26b+%3D%C3%A4", "?tag=b", "", ""]
  expect(requests.map(({ url }) => new URL(url).search)).toEqual(queries)
})

it("a shared request survives the abort of one caller and is aborted when its last caller aborts", async () => {
  const { client, requests, read } = makeCachingClient([neverResponds, () => textResponse("b")])
  const [first, last] = [new AbortController(), new AbortController()]
  const calls = [first, last].map(({ signal }) => client.prompts.getResolved("p", { signal }))
  await flush()
  first.abort("one")
  expect(await captureError(calls[0]!)).toEqual(new AbortError("The call was aborted", { cause: "one" }))
  expect(requests[0]!.signal.aborted).toBe(false)
  last.abort()
  expect(await captureError(calls[1]!)).toBeInstanceOf(AbortError)
  expect([requests.length, requests[0]!.signal.aborted]).toEqual([1, true])
  expect(vi.getTimerCount()).toBe(0)
  expect(await read()).toBe("b (fresh)")
})

it("a call that joins a request has its own timeout and sends a new request if the shared request times out", async () => {
  const { client, requests } = makeCachingClient([neverResponds], { timeout: 1_000 })
  const early = client.prompts.get("p").catch((error) => error)
  await advance(600)
  const late = client.prompts.get("p")
  await advance(400)
  const error = new TimeoutError("No result within 1000 ms")
  expect(await early).toEqual(error)
  // The shared request has timed out, but the late call has not.
  expect(requests).toHaveLength(2)
  expect(await settle(late)).toEqual({ error, took: 600 })
  expect(vi.getTimerCount()).toBe(0)
})

it("a background refresh survives the abort of the calls that started and joined it", async () => {
  const { client, read, requests } = makeCachingClient([() => textResponse("a"), neverResponds])
  await read()
  await advance(9_999)
  const [starter, joiner] = [new AbortController(), new AbortController()]
  expect(await read({ signal: starter.signal })).toBe("a (stale)")
  starter.abort()
  await advance(1)
  const joined = client.prompts.getResolved("p", { signal: joiner.signal, timeout: 10_000 })
  await flush()
  joiner.abort()
  expect(await captureError(joined)).toBeInstanceOf(AbortError)
  expect([requests.length, requests[1]!.signal.aborted]).toEqual([2, false])
})

it("a call does not share the text of a request that started more than ttl + maxStale before the call", async () => {
  const { client, pending } = makeManualClient({ cache: { ttl: 0, maxStale: 1_000 } })
  const readData = async () => (await client.prompts.getResolved("p")).data.resolved_content
  const early = readData()
  await advance(1_000)
  const joined = readData()
  await advance(1)
  const late = readData()
  await flush()
  expect(pending).toHaveLength(1)
  pending[0]!("first")
  expect([await early, await joined]).toEqual(["first", "first"])
  await flush()
  pending[1]!("second")
  expect(await late).toBe("second")
})

it("if two requests for a target overlap, the cache keeps the result of the request that started later", async () => {
  const { client, read, pending } = makeManualClient()
  const early = client.prompts.getResolved("p")
  await advance(10)
  const late = client.prompts.getResolved("p", { timeout: 5_000 })
  await flush()
  pending[1]!("new")
  await late
  pending[0]!("old")
  expect((await early).data.resolved_content).toBe("old")
  expect(await read()).toBe("new (cached)")
})
