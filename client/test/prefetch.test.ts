import { expect, it } from "vitest"
import type { ClientOptions, PromptSelection } from "../src/index.ts"
import { countRequested, makeFaultyService, toNames } from "./faultyService.ts"
import {
  advance,
  awaitValue,
  captureError,
  connectionRefused,
  errorResponse,
  jsonResponse,
  neverResponds,
  unauthorized,
  useFakeTime
} from "./support.ts"

useFakeTime(0.5)

const makeService = (count: number, options: ClientOptions = {}) => {
  const made = makeFaultyService(count, { cache: {}, ...options })
  return { ...made, prefetch: (selection: PromptSelection) => awaitValue(made.client.prefetch(selection)) }
}

it("prefetch with a filter loads 1,000 prompts with 10 requests, and later calls by name send no request", async () => {
  const { service, prefetch, read } = makeService(1_000)
  expect(await prefetch({ tag: "production" })).toEqual({ loaded: 1_000, missing: [] })
  expect(service.requests).toHaveLength(10)
  expect(service.requests[9]).toBe("/api/v1/resolved?page=10&per_page=100&tag=production&names=true")
  expect(await read("prompt-999")).toBe("Text 999 (cached)")
})

it("prefetch loads each selected prompt once, 100 per request, and returns the selected names that no prompt has", async () => {
  const { service, prefetch, read } = makeService(150)
  const reference = { name: "prompt-0", slots: [] }
  expect(await prefetch([...toNames(149), "none", "p149", reference, "a b"])).toEqual({
    loaded: 150,
    missing: ["none", "a b"]
  })
  expect(
    service.requests.map((target) => new URLSearchParams(target.split("?")[1]).getAll("prompt"))
  ).toEqual([toNames(100), [...toNames(149).slice(100), "none", "p149", "a b"]])
  expect(await read("prompt-120")).toBe("Text 120 (cached)")
  expect(await read("p149")).toBe("Text 149 (cached)")
  // The cache stores the result under the selected id, not under the name.
  expect(await read("prompt-149")).toBe("Text 149 (fresh)")
})

it("a prefetched result has the response and the age of its page, but no ETag, so its refresh gets a full response", async () => {
  const { client, prefetch, read, state } = makeService(1)
  const meta = { page: 1, per_page: 100, total: 1, prompts: [{ name: "prompt-0" }] }
  const headers = { etag: '"page"', age: "7", "x-request-id": "req-1", "prompt-version": "9" }
  state.fault = () => jsonResponse(200, { data: [{ id: "p0", resolved_content: "Old" }], meta }, headers)
  await prefetch({})
  state.fault = undefined
  const result = await client.prompts.getResolved("prompt-0").withResponse()
  expect(result).toMatchObject({ age: 7_000, requestId: "req-1", response: { status: 200 } })
  expect([result.etag, result.version]).toEqual([undefined, undefined])
  await advance(23_000)
  expect(await read("prompt-0")).toBe("Old (stale)")
  expect(await read("prompt-0")).toBe("Text 0 (cached)")
})

it.each([414, 422, 431])("prefetch asks for half as many prompts after a %i", async (status) => {
  const { service, prefetch, state } = makeService(60)
  state.fault = ({ url }) => (countRequested(url) > 25 ? errorResponse(status) : undefined)
  for (const selection of [{}, toNames(60)])
    expect(await prefetch(selection)).toEqual({ loaded: 60, missing: [] })
  // The second page of 50 names has only 10 names.
  expect(service.requests.map(countRequested)).toEqual([25, 25, 25, 10, 25, 25, 10])
})

const toPage = (prompt: object, prompts?: ReadonlyArray<object>) => () =>
  jsonResponse(200, { data: [prompt], meta: { page: 1, per_page: 1, total: 1, prompts } })

it.each([
  ["401", unauthorized, "UnauthorizedError"],
  ["no response within the timeout", neverResponds, "TimeoutError"],
  ["a page without names", toPage({ resolved_content: "Text" }), "InvalidResponseError"],
  ["a prompt without a name", toPage({ resolved_content: "Text" }, [{}]), "InvalidResponseError"],
  ["a prompt without a text", toPage({ id: "p0" }, [{ name: "prompt-0" }]), "InvalidResponseError"]
] as const)("prefetch rejects with the error of a request: %s", async (_, respond, name) => {
  const { client, state } = makeService(1)
  state.fault = respond
  for (const selection of [{}, ["prompt-0"]])
    expect(await captureError(client.prefetch(selection, { timeout: 1_000 }))).toMatchObject({ name })
})

it("a successful prefetch ends the pauses after failed calls", async () => {
  const { prefetch, read, state } = makeService(2)
  state.fault = connectionRefused
  for (const _ of [1, 2, 3]) expect(await read("prompt-1")).toBe("ConnectionError")
  expect(state.sent).toBe(2)
  state.fault = undefined
  await prefetch(["prompt-0"])
  expect(await read("prompt-1")).toBe("Text 1 (fresh)")
})

it("prefetch rejects if the client has no cache, or a cache with fewer entries than selected prompts", async () => {
  const { client, service } = makeService(250, { cache: { maxEntries: 200 } })
  const message = "cache.maxEntries is less than the 250 prompts selected"
  for (const selection of [{}, toNames(250)])
    expect(await captureError(client.prefetch(selection))).toEqual(new RangeError(message))
  expect(await captureError(service.connect().prefetch({}))).toEqual(
    new TypeError("prefetch needs the option cache")
  )
})
