import { describe, expect, it, vi } from "vitest"
import type { ClientOptions, PrefetchOptions } from "../src/index.ts"
import { makeBundle } from "./makeBundle.ts"
import {
  captureError,
  connectionRefused,
  errorResponse,
  flush,
  jsonResponse,
  makeScriptedClient,
  type Responder,
  rateLimited,
  settle,
  useFakeTimeWithoutJitter,
  toId
} from "./support.ts"

useFakeTimeWithoutJitter()

const makeIds = (count: number) => Array.from({ length: count }, (_, index) => toId(`p${index + 1}`))

/** A service with prompts that responds to a limited number of requests in each minute. */
const makeService = (
  ids: ReadonlyArray<string>,
  { perMinute = Number.POSITIVE_INFINITY, options = {} as Partial<ClientOptions> } = {}
) => {
  let open = 0
  let maxOpen = 0
  const counts = new Map<number, number>()
  const faults = new Map<string, Responder>()
  const respond: Responder = async (request) => {
    const { pathname, searchParams } = new URL(request.url)
    const minute = Math.floor(performance.now() / 60_000)
    counts.set(minute, (counts.get(minute) ?? 0) + 1)
    if (counts.get(minute)! > perMinute)
      return rateLimited(String(Math.ceil(60 - (performance.now() % 60_000) / 1_000)))
    maxOpen = Math.max(maxOpen, ++open)
    await new Promise((resolve) => setTimeout(resolve, 100))
    open--
    if (pathname.endsWith("/prompts")) {
      const [page, per_page] = [Number(searchParams.get("page") ?? 1), Number(searchParams.get("per_page"))]
      const data = ids.slice((page - 1) * per_page, page * per_page).map((id) => ({ id, title: "" }))
      return jsonResponse(200, { data, meta: { page, per_page, total: ids.length } })
    }
    const id = pathname.split("/").at(-2)!
    return (
      faults.get(toId(id))?.(request) ??
      jsonResponse(200, { data: { id, resolved_content: `Text of ${id}` } })
    )
  }
  const scripted = makeScriptedClient([respond], { cache: {}, ...options })
  const prefetch = async (
    selection: Parameters<typeof scripted.client.prefetch>[0],
    call?: PrefetchOptions
  ) => {
    const outcome = await settle(scripted.client.prefetch(selection, call))
    if ("error" in outcome) throw outcome.error
    return { ...outcome.value, took: outcome.took }
  }
  return { ...scripted, prefetch, faults, maxOpen: () => maxOpen }
}

describe("prefetch", () => {
  it("prefetch ends the pauses after failed calls, so that every prompt is loaded", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { prefetch, client, faults } = makeService(makeIds(10), { options: { maxRetries: 0 } })
    for (const id of makeIds(10)) faults.set(id, connectionRefused)
    for (const _ of [1, 2, 3]) {
      for (const id of makeIds(10)) await settle(captureError(client.prompts.getResolved(id)))
    }
    faults.clear()
    expect(await prefetch({})).toMatchObject({ loaded: 10, failures: [] })
  })

  it("prefetch loads the prompts of a filter, at most four at a time, so that later calls send no request", async () => {
    const ids = makeIds(250)
    const { prefetch, client, requests, maxOpen } = makeService(ids)
    const result = await prefetch({ tag: "production" })
    expect(result).toEqual({ loaded: 250, failures: [], took: expect.any(Number) })
    expect(maxOpen()).toBe(4)
    const pages = ["per_page=100", "page=2&per_page=100", "page=3&per_page=100"]
    expect(requests.filter(({ url }) => url.includes("?")).map(({ url }) => url.split("?")[1])).toEqual([
      ...pages.map((page) => `${page}&tag=production`),
      // The names come from the list of all prompts.
      ...pages
    ])
    expect(requests).toHaveLength(256)
    const { data, source } = await client.prompts.getResolved(toId("p250"))
    expect([data.resolved_content, source]).toEqual(["Text of p250", "cached"])
    expect(requests).toHaveLength(256)
  })

  it("prefetch loads each id and each reference once, with the given concurrency, and calls onProgress after each prompt", async () => {
    const { prefetch, requests, maxOpen } = makeService([])
    const progress: Array<unknown> = []
    const selection = [toId("p1"), { id: toId("p2"), slots: ["shop"] }, toId("p3"), toId("p1")] as const
    const result = await prefetch(selection, { concurrency: 1, onProgress: (step) => progress.push(step) })
    expect(result).toMatchObject({ loaded: 3, failures: [] })
    expect(maxOpen()).toBe(1)
    expect(requests).toHaveLength(3)
    expect(progress).toEqual([1, 2, 3].map((done) => ({ done, failed: 0, total: 3 })))
  })

  it("prefetch waits for the next minute whenever the rate limit is exceeded, and loads everything", async () => {
    const { prefetch, requests, client } = makeService(makeIds(250), { perMinute: 100 })
    const { loaded, failures, took } = await prefetch({})
    expect({ loaded, failures }).toEqual({ loaded: 250, failures: [] })
    expect(took).toBeGreaterThan(120_000)
    expect(took).toBeLessThan(180_000)
    // 253 responses, and up to four 429s at the end of each minute, one for each request in flight.
    expect(requests.length).toBeGreaterThanOrEqual(253)
    expect(requests.length).toBeLessThanOrEqual(253 + 2 * 4)
    expect((await client.prompts.getResolved(toId("p1"))).source).toBe("stale")
  })

  it("prefetch reports the prompts that failed and loads all other prompts", async () => {
    const { prefetch, faults } = makeService([])
    faults.set(toId("p2"), () => errorResponse(404, "NOT_FOUND", "Prompt not found"))
    faults.set(toId("p4"), () => errorResponse(422, "RESOLVED_TOO_LARGE", "Too large"))
    const progress: Array<unknown> = []
    const result = await prefetch(makeIds(5), { concurrency: 1, onProgress: (step) => progress.push(step) })
    expect(result).toMatchObject({
      loaded: 3,
      failures: [
        { id: toId("p2"), error: { name: "NotFoundError" } },
        { id: toId("p4"), error: { name: "ResolvedTooLargeError" } }
      ]
    })
    expect(progress.at(-1)).toEqual({ done: 5, failed: 2, total: 5 })
  })

  it("if the service is down, prefetch stops after as many failures as its concurrency, and reports all prompts as failed", async () => {
    const bundle = makeBundle(makeIds(1_000).map((id) => ({ id, content: "Bundled" })))
    const { client, requests } = makeScriptedClient([connectionRefused], {
      cache: {},
      maxRetries: 1,
      bundle,
      mode: "bundle-first"
    })
    const outcome = await settle(client.prefetch(makeIds(1_000)))
    expect(outcome).toMatchObject({ value: { loaded: 0 }, took: 500 })
    const { failures } = (outcome as { value: Awaited<ReturnType<typeof client.prefetch>> }).value
    expect(failures.map(({ id }) => id).toSorted()).toEqual(makeIds(1_000).toSorted())
    expect(new Set(failures.map(({ error }) => error.name))).toEqual(new Set(["ConnectionError"]))
    // Three more prompts started before the fourth failure. Each of the seven prompts is requested twice.
    expect(requests).toHaveLength(14)
  })

  it.each([401, 403])("prefetch rejects immediately if the key is rejected with %i", async (status) => {
    const { prefetch, faults, requests } = makeService([])
    faults.set(toId("p2"), () => errorResponse(status, "CODE", "No"))
    expect(await captureError(prefetch(makeIds(100), { concurrency: 2 }))).toMatchObject({ status })
    await flush()
    expect(requests.length).toBeLessThanOrEqual(3)
  })

  it("prefetch rejects with an AbortError when its signal is aborted, even while prefetch waits for the rate limit", async () => {
    const { client, requests } = makeService(makeIds(10), { perMinute: 5, options: { timeout: 1_000 } })
    const controller = new AbortController()
    const call = client.prefetch(makeIds(10), { signal: controller.signal })
    setTimeout(() => controller.abort("enough"), 5_000)
    expect(await settle(call)).toMatchObject({ error: { name: "AbortError", cause: "enough" }, took: 5_000 })
    const sent = requests.length
    await settle(new Promise((resolve) => setTimeout(resolve, 120_000)))
    expect(requests).toHaveLength(sent)
  })

  it("prefetch rejects with the error that onProgress throws, and stops", async () => {
    const { prefetch, requests } = makeService([])
    const onProgress = () => {
      throw new Error("progress")
    }
    expect(await captureError(prefetch(makeIds(100), { onProgress }))).toEqual(new Error("progress"))
    await settle(new Promise((resolve) => setTimeout(resolve, 10_000)))
    expect(requests.length).toBeLessThanOrEqual(8)
  })

  it("prefetch rejects if the list cannot be read", async () => {
    const { client } = makeScriptedClient([connectionRefused], { cache: {}, maxRetries: 0 })
    expect(await captureError(client.prefetch({}))).toMatchObject({ name: "ConnectionError" })
  })

  it("prefetch requires a cache with room for the selection, and a concurrency of at least 1", async () => {
    const { client, requests } = makeService(makeIds(250), { options: { cache: { maxEntries: 200 } } })
    const message = "cache.maxEntries is less than the 250 prompts selected"
    expect(await captureError(client.prefetch({}))).toEqual(new RangeError(message))
    expect(await captureError(client.prefetch(makeIds(250)))).toEqual(new RangeError(message))
    expect(requests).toHaveLength(1)
    expect(await captureError(client.prefetch([], { concurrency: 0 }))).toBeInstanceOf(RangeError)
    expect(await captureError(client.prefetch([""]))).toEqual(new TypeError("prompt must be a name or an id"))
    const uncached = makeScriptedClient([])
    expect(await captureError(uncached.client.prefetch(["p1"]))).toEqual(
      new TypeError("prefetch needs the option cache")
    )
  })
})
