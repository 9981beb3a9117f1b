import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { PromptClient } from "../src/index.ts"
import {
  captureError,
  connectionRefused,
  errorResponse,
  installFakeTime,
  jsonResponse,
  key,
  makeScriptedClient,
  neverResponds,
  rateLimited,
  settle,
  promptId
} from "./support.ts"

afterEach(() => {
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

const respondOk = () => jsonResponse(200, { data: { title: "a" } })

describe("withOptions", () => {
  beforeEach(installFakeTime)

  it("withOptions changes the given options and keeps all other options", async () => {
    const { client, requests } = makeScriptedClient([neverResponds], { headers: { a: "1" }, timeout: 1_000 })
    const derived = client.withOptions({ timeout: 50, headers: { b: "2" } })
    expect(await settle(derived.prompts.get(promptId))).toMatchObject({
      error: { name: "TimeoutError" },
      took: 50
    })
    expect(requests[0]!.headers).toMatchObject({ b: "2", authorization: `Bearer ${key}` })
    expect(requests[0]!.headers.a).toBeUndefined()
    expect(await settle(client.prompts.get(promptId))).toMatchObject({ took: 1_000 })
    expect(requests[1]!.headers.a).toBe("1")
    expect(() => client.withOptions({ timeout: 0 })).toThrow(RangeError)
  })

  it("a client from withOptions shares the cache of the original client if apiKey, baseUrl, cache, fetch and headers are equal", async () => {
    const { client, requests } = makeScriptedClient([respondOk], { cache: {} })
    await client.prompts.get(promptId)
    expect((await client.withOptions({ timeout: 50 }).prompts.get(promptId)).source).toBe("cached")
    for (const options of [
      { apiKey: "other" },
      { baseUrl: "http://other.test" },
      { cache: { ttl: 1 } },
      { cache: undefined },
      { fetch: async () => respondOk() },
      { headers: { a: "1" } }
    ]) {
      expect((await client.withOptions(options).prompts.get(promptId)).source).toBe("fresh")
    }
    expect((await client.withOptions({}).withOptions({ maxRetries: 0 }).prompts.get(promptId)).source).toBe(
      "cached"
    )
    expect(requests).toHaveLength(6)
  })

  it("a client from withOptions shares the pause after a 429 only with clients of the same key", async () => {
    const { client, requests } = makeScriptedClient([() => rateLimited("30"), respondOk], { maxRetries: 0 })
    const derived = client.withOptions({ timeout: 1_000 })
    expect(await captureError(client.prompts.get(promptId))).toMatchObject({ status: 429 })
    expect(await captureError(derived.prompts.get(promptId))).toMatchObject({ status: 429 })
    expect(requests).toHaveLength(1)
    expect((await client.withOptions({ apiKey: "other" }).prompts.get(promptId)).source).toBe("fresh")
  })

  it("after one client receives a 401, the clients that withOptions derived from this client return neither a cached result nor a fallback", async () => {
    const { client } = makeScriptedClient([
      respondOk,
      () => errorResponse(401, "UNAUTHORIZED", "API key has been revoked"),
      connectionRefused
    ])
    const derived = client.withOptions({ maxRetries: 0, cache: {} })
    await derived.prompts.getResolved(promptId)
    expect(await captureError(client.prompts.list())).toMatchObject({ status: 401 })
    expect(await captureError(derived.prompts.getResolved(promptId, { fallback: "x" }))).toMatchObject({
      name: "ConnectionError"
    })
  })
})

describe("environment variables", () => {
  const readRequest = async (client: () => PromptClient) => {
    const requests: Array<{ readonly url: string; readonly authorization: string | undefined }> = []
    const spy = async (url: string, { headers }: { readonly headers: Record<string, string> }) => {
      requests.push({ url, authorization: headers.authorization })
      return respondOk()
    }
    vi.stubGlobal("fetch", spy)
    await client().prompts.get(promptId)
    return requests[0]!
  }

  it("PROMPT_RETRIEVAL_KEY and PROMPT_RETRIEVAL_URL replace options that are absent", async () => {
    vi.stubEnv("PROMPT_RETRIEVAL_KEY", "key_from_environment")
    vi.stubEnv("PROMPT_RETRIEVAL_URL", "https://environment.test/prefix/")
    expect(await readRequest(() => new PromptClient())).toEqual({
      url: `https://environment.test/prefix/api/v1/prompts/${promptId}`,
      authorization: "Bearer key_from_environment"
    })
    const options = { apiKey: "key_of_option", baseUrl: "https://option.test" }
    expect(await readRequest(() => new PromptClient(options))).toEqual({
      url: `https://option.test/api/v1/prompts/${promptId}`,
      authorization: "Bearer key_of_option"
    })
    // An empty option is an error, not a reason to use another key.
    expect(() => new PromptClient({ apiKey: "" })).toThrow(
      new TypeError("apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY")
    )
  })

  it.each([
    ["no process", undefined],
    ["a process without an environment", {}],
    [
      "an environment that may not be read",
      {
        get env() {
          throw new Error("Requires env access")
        }
      }
    ]
  ])("in a runtime with %s, the constructor treats environment variables as absent", (_, process) => {
    vi.stubGlobal("process", process)
    let error: unknown
    try {
      new PromptClient()
    } catch (thrown) {
      error = thrown
    } finally {
      vi.unstubAllGlobals()
    }
    expect(error).toEqual(
      new TypeError("apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY")
    )
  })
})
