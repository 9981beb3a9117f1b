import { afterEach, expect, it, vi } from "vitest"
import { type FetchInit, PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import {
  allCalls,
  captureError,
  key,
  makeScriptedClient,
  neverResponds,
  ok,
  rateLimited,
  settle,
  useFakeTime
} from "./support.ts"

useFakeTime()
afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
})

const missingKey = "apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY"
const invalidKey = "apiKey contains invalid characters"
const invalidUrl = "baseUrl must be an http or https URL without credentials, query or fragment"
const invalidMode = "mode must be service-first, or bundle-first with a bundle"

it.each<[options: object, message: string]>([
  ...[null, ""].map((apiKey): [object, string] => [{ apiKey }, missingKey]),
  ...[7, " ", "key live", "key\n", "clé"].map((apiKey): [object, string] => [{ apiKey }, invalidKey]),
  ...["ftp://host", "http://user:pass@host", "http://host?a=b", "http://host#a", "host", ""].map(
    (baseUrl): [object, string] => [{ baseUrl }, invalidUrl]
  ),
  [{ mode: "bundle-first" }, invalidMode],
  [{ mode: "bundled", bundle: { prompts: [] } }, invalidMode],
  [{ bundle: {} }, "bundle must be a bundle of prompts"],
  [{ timeOut: 1_000 }, "unknown option timeOut"],
  [{ cache: { maxAge: 1 } }, "unknown option cache.maxAge"]
])(
  "the options %j make PromptClient throw a TypeError that names the option but not its value",
  (options, message) => {
    expect(() => new PromptClient({ apiKey: key, ...options })).toThrow(new TypeError(message))
  }
)

it("an invalid timeout or maxRetries makes the constructor and every call fail with a RangeError", async () => {
  const { client, requests } = makeScriptedClient([ok])
  for (const timeout of [0, 1.5, 2 ** 31, Number.NaN]) {
    expect(() => makeScriptedClient([ok], { timeout })).toThrow(RangeError)
    for (const call of allCalls) await expect(call(client, { timeout })).rejects.toThrow(RangeError)
  }
  for (const maxRetries of [-1, Number.POSITIVE_INFINITY])
    await expect(client.prompts.get("p", { maxRetries })).rejects.toThrow(RangeError)
  expect(requests).toEqual([])
})

it("a call with an unknown option, parameter or filter sends no request, and rejects with a TypeError that names the option", async () => {
  const { client, requests } = makeScriptedClient([ok], { cache: {} })
  const options = { timeOut: 1 } as never
  const params = { tags: "a" } as never
  for (const call of allCalls)
    await expect(call(client, options)).rejects.toEqual(new TypeError("unknown option timeOut"))
  for (const call of [
    () => client.prompts.list(params),
    () => client.prompts.versions.list("p", params),
    () => client.live(params),
    () => client.live({}, params),
    () => client.prefetch(params)
  ])
    await expect(call()).rejects.toEqual(new TypeError("unknown option tags"))
  // Only getResolved accepts the option fallback.
  const withFallback = client.prompts.get("p", { fallback: "x" } as never)
  await expect(withFallback).rejects.toEqual(new TypeError("unknown option fallback"))
  expect(requests).toEqual([])
})

it.each([
  [undefined, "http://127.0.0.1:3000"],
  ["https://prompts.example.com/", "https://prompts.example.com"],
  ["http://host:8080/a/b//", "http://host:8080/a/b"],
  ["http://[::1]:3000", "http://[::1]:3000"]
])("a client with baseUrl %s sends its requests to %s/api/v1", async (baseUrl, base) => {
  const { client, requests } = makeScriptedClient([ok], { baseUrl })
  await client.prompts.get("p")
  expect(requests[0]!.url).toBe(`${base}/api/v1/prompts/p`)
})

it("withOptions changes the given options and keeps all other options", async () => {
  const { client, requests } = makeScriptedClient([neverResponds], { headers: { a: "1" }, timeout: 1_000 })
  const derived = client.withOptions({ headers: { b: "2" } })
  for (const { prompts } of [client, derived])
    expect(await settle(prompts.get("p"))).toMatchObject({ error: { name: "TimeoutError" }, took: 1_000 })
  expect(requests.map(({ headers: { a, b } }) => [a, b])).toEqual([
    ["1", undefined],
    [undefined, "2"]
  ])
})

it("a client from withOptions shares the cache and the live prompts if apiKey, baseUrl, cache, fetch and headers are equal", async () => {
  const service = new FakeService({ prompts: ["a", "b"].map((name) => ({ name, content: name })) })
  const client = service.connect({ cache: {} })
  await client.prompts.getResolved("a")
  await using _ = await client.live(["b"])
  const readSources = async ({ prompts }: PromptClient) =>
    `${(await prompts.getResolved("a")).source} ${(await prompts.getResolved("b")).source}`
  const same = client.withOptions({ timeout: 50 }).withOptions({ maxRetries: 1 })
  expect(await readSources(same)).toBe("cached live")
  for (const options of [
    { apiKey: "other" },
    { baseUrl: "http://other.test" },
    { cache: { ttl: 1 } },
    { cache: undefined },
    { fetch: service.fetch.bind(service) },
    { headers: { a: "1" } }
  ])
    expect(await readSources(client.withOptions(options)), JSON.stringify(options)).toBe("fresh fresh")
})

it("a client from withOptions shares the pause after a 429 only with clients of the same key", async () => {
  const { client, requests } = makeScriptedClient([() => rateLimited("30"), ok], { maxRetries: 0 })
  const derived = client.withOptions({ timeout: 1_000 })
  for (const { prompts } of [client, derived])
    expect(await captureError(prompts.get("p"))).toMatchObject({ status: 429 })
  await client.withOptions({ apiKey: "other" }).prompts.get("p")
  expect(requests).toHaveLength(2)
})

it("the options apiKey and baseUrl default to PROMPT_RETRIEVAL_KEY and PROMPT_RETRIEVAL_URL", async () => {
  vi.stubEnv("PROMPT_RETRIEVAL_KEY", "key_from_environment")
  vi.stubEnv("PROMPT_RETRIEVAL_URL", "https://environment.test/prefix/")
  const fetch = vi.fn(async (_url: string, _init: FetchInit) => ok())
  vi.stubGlobal("fetch", fetch)
  await new PromptClient().prompts.get("p")
  await new PromptClient({ apiKey: "key_of_option", baseUrl: "https://option.test" }).prompts.get("p")
  expect(fetch.mock.calls.map(([url, { headers }]) => [url, headers.authorization])).toEqual([
    ["https://environment.test/prefix/api/v1/prompts/p", "Bearer key_from_environment"],
    ["https://option.test/api/v1/prompts/p", "Bearer key_of_option"]
  ])
  // An empty apiKey is an error: the client does not use the key of the environment.
  expect(() => new PromptClient({ apiKey: "" })).toThrow(new TypeError(missingKey))
})
