import { describe, expect, it, vi } from "vitest"
import type { ClientOptions, FetchInit, PromptSelection } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { makeBundle } from "./makeBundle.ts"
import {
  advance,
  captureError,
  connectionRefused,
  errorResponse,
  jsonResponse,
  neverResponds,
  page,
  type Request,
  settle,
  toId,
  useFakeTimeWithoutJitter
} from "./support.ts"

useFakeTimeWithoutJitter()

const toPrompts = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    id: toId(`p${index}`),
    name: `prompt-${index}`,
    content: `Text ${index}`,
    version: index + 1
  }))
const toNames = (count: number) => toPrompts(count).map(({ name }) => name)

type Fault = (request: Request, service: FakeService) => Response | Promise<Response> | undefined

/** A service with prompts, and a client with a cache. A fault may respond in place of the service. */
const makeService = (count: number, options: ClientOptions = {}) => {
  const service = new FakeService({ prompts: toPrompts(count) })
  const state: { fault?: Fault | undefined } = {}
  const fetch = async (url: string, init: FetchInit) =>
    (await state.fault?.({ url, ...init }, service)) ?? service.fetch(url, init)
  const client = service.connect({ cache: {}, ...options }).withOptions({ fetch })
  const prefetch = async (selection: PromptSelection, call = {}) => {
    const outcome = await settle(client.prefetch(selection, call))
    if ("error" in outcome) throw outcome.error
    return outcome.value
  }
  const read = async (name: string) => {
    const { data, source, version } = await client.prompts.getResolved(name)
    return [data.resolved_content, source, version]
  }
  return { service, client, prefetch, read, state }
}

const tooLarge = () => errorResponse(422, "RESOLVED_TOO_LARGE", "Ask for fewer prompts per page")

describe("prefetch", () => {
  it("prefetch with a filter loads 1,000 prompts with 10 requests, so that later calls by name send no request", async () => {
    const { service, prefetch, read } = makeService(1_000)
    expect(await prefetch({ tag: "production" })).toEqual({ loaded: 1_000, missing: [] })
    expect(service.requests).toEqual(
      Array.from(
        { length: 10 },
        (_, index) => `/api/v1/resolved?page=${index + 1}&per_page=100&tag=production&names=true`
      )
    )
    expect(await read("prompt-0")).toEqual(["Text 0", "cached", 1])
    expect(await read("prompt-999")).toEqual(["Text 999", "cached", 1_000])
    expect(service.requests).toHaveLength(10)
  })

  it("prefetch loads names, ids and references once each, 100 per request, and returns the names, ids and references without a prompt", async () => {
    const { service, prefetch, read } = makeService(150)
    const id = toId("p149")
    const selection = [
      ...toNames(149),
      "none",
      id,
      { name: "prompt-0", slots: [] },
      { name: id, slots: [] },
      "a b"
    ]
    expect(await prefetch(selection)).toEqual({ loaded: 150, missing: ["none", "a b"] })
    expect(
      service.requests.map((target) => new URLSearchParams(target.split("?")[1]).getAll("prompt"))
    ).toEqual([toNames(100), [...toNames(149).slice(100), "none", id, "a b"]])
    expect(await read("prompt-120")).toEqual(["Text 120", "cached", 121])
    expect(await read(id)).toEqual(["Text 149", "cached", 150])
    // The result is stored under the id that was selected, not under the name.
    expect(await read("prompt-149")).toEqual(["Text 149", "fresh", 150])
  })

  it("a prefetched result has the response, the request id and the age of its page, no ETag, and is refreshed with a full response", async () => {
    const { client, prefetch, service, state } = makeService(1)
    state.fault = (_, { fetch: __ }) =>
      jsonResponse(
        200,
        {
          data: [{ id: toId("p0"), resolved_content: "Old" }],
          meta: { page: 1, per_page: 100, total: 1, prompts: [{ name: "prompt-0" }] }
        },
        { etag: '"page"', age: "7", "x-request-id": "req-1", "prompt-version": "9" }
      )
    await prefetch({})
    state.fault = undefined
    const result = await client.prompts.getResolved("prompt-0").withResponse()
    expect(result).toMatchObject({
      source: "cached",
      age: 7_000,
      requestId: "req-1",
      response: { status: 200 }
    })
    expect([result.etag, result.version]).toEqual([undefined, undefined])
    await advance(23_000)
    expect((await client.prompts.getResolved("prompt-0")).source).toBe("stale")
    await advance(0)
    expect(await client.prompts.getResolved("prompt-0")).toMatchObject({ source: "cached", version: 1 })
    expect(service.requests).toEqual(["/api/v1/prompts/prompt-0/resolved"])
  })

  it.each([
    ["422", tooLarge],
    ["414", page(414)],
    ["431", () => errorResponse(431, "HEADERS_TOO_LARGE", "Request headers too large")]
  ] as const)("prefetch asks for half as many prompts after a %s", async (_, respond) => {
    for (const selection of [{}, toNames(60)]) {
      const { service, prefetch, state } = makeService(60)
      const count = (url: string) => {
        const query = new URL(url, "http://host").searchParams
        return Number(query.get("per_page") ?? query.getAll("prompt").length)
      }
      state.fault = (request) => (count(request.url) > 25 ? respond(request) : undefined)
      expect(await prefetch(selection)).toEqual({ loaded: 60, missing: [] })
      // The second page of 50 names has only 10 names.
      expect(service.requests.map(count)).toEqual(Array.isArray(selection) ? [10, 25, 25, 10] : [25, 25, 25])
    }
  })

  it.each([
    ["401", () => errorResponse(401, "UNAUTHORIZED", "API key has been revoked"), "UnauthorizedError"],
    [
      "503",
      () => errorResponse(503, "SERVICE_UNAVAILABLE", "Service unavailable"),
      "ServiceUnavailableError"
    ],
    ["no connection", connectionRefused, "ConnectionError"],
    ["no response within the timeout", neverResponds, "TimeoutError"],
    [
      "a page without names",
      () => jsonResponse(200, { data: [], meta: { page: 1, per_page: 1, total: 0 } }),
      "InvalidResponseError"
    ]
  ] as const)("prefetch rejects with the error of a request: %s", async (_, respond, name) => {
    const bundle = makeBundle([{ id: toId("p0"), name: "prompt-0", content: "Bundled" }])
    const { client, state } = makeService(1, { bundle, mode: "bundle-first" })
    state.fault = respond
    for (const selection of [{}, ["prompt-0"]])
      expect(await captureError(client.prefetch(selection, { timeout: 1_000 }))).toMatchObject({ name })
  })

  it("texts that prefetch requested before a rejection of the key are not stored after it", async () => {
    const { client, state } = makeService(1)
    const respond = Promise.withResolvers<void>()
    state.fault = ({ url }, service) =>
      url.includes("resolved?")
        ? respond.promise.then(() => service.fetch(url, { headers: {} } as FetchInit) as Promise<Response>)
        : errorResponse(401, "UNAUTHORIZED", "API key has been revoked")
    const call = client.prefetch({})
    await captureError(client.prompts.getResolved("prompt-0"))
    await captureError(client.prompts.getResolved("prompt-0"))
    respond.resolve()
    await call
    expect(await captureError(client.prompts.getResolved("prompt-0"))).toMatchObject({ status: 401 })
  })

  it("prefetch ends the pauses after failed calls", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { client, prefetch, state } = makeService(2)
    state.fault = connectionRefused
    for (const _ of [1, 2, 3]) await captureError(client.prompts.getResolved("prompt-1"))
    state.fault = undefined
    await prefetch(["prompt-0"])
    expect((await client.prompts.getResolved("prompt-1")).source).toBe("fresh")
  })

  it("prefetch requires a cache with room for the selection", async () => {
    const { client, service } = makeService(250, { cache: { maxEntries: 200 } })
    const message = "cache.maxEntries is less than the 250 prompts selected"
    for (const selection of [{}, toNames(250)])
      expect(await captureError(client.prefetch(selection))).toEqual(new RangeError(message))
    expect(await captureError(client.prefetch([""]))).toEqual(new TypeError("prompt must be a name or an id"))
    expect(await captureError(service.connect().prefetch({}))).toEqual(
      new TypeError("prefetch needs the option cache")
    )
  })
})
