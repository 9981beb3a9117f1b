import { describe, expect, it } from "vitest"
import { type PromptReference, traceAttributes } from "../src/index.ts"
import {
  advance,
  flush,
  jsonResponse,
  makeScriptedClient,
  serviceUnavailable,
  useFakeTimeWithoutJitter
} from "./support.ts"
import { bundle, id, makeService, respondWithText } from "./availabilityService.ts"

useFakeTimeWithoutJitter()

const headers = { etag: '"a"', "prompt-version": "3", "x-request-id": "req-1" }

describe("the provenance of a result", () => {
  it("every result has version, etag, source, age and requestId, but these properties are not enumerable", async () => {
    const service = makeService({ bundle, cache: { ttl: 1_000, maxStale: 1_000 } })
    service.respondWith(respondWithText("a", headers))
    const expected = { version: 3, etag: '"a"', requestId: "req-1" }
    expect(await service.read()).toMatchObject({ ...expected, source: "fresh", age: 0 })
    await advance(400)
    const cached = await service.read()
    expect(cached).toMatchObject({ ...expected, source: "cached", age: 400 })
    expect(Object.keys(cached)).toEqual(["data"])
    service.respondWith(
      () => new Response(null, { status: 304, headers: { "prompt-version": "4", "x-request-id": "req-2" } })
    )
    await advance(800)
    expect(await service.read()).toMatchObject({ ...expected, source: "stale", age: 1_200 })
    await flush()
    // The 304 confirmed the text of version 3 as the text of version 4.
    const confirmed = { version: 4, etag: '"a"', requestId: "req-2", source: "cached", age: 0 }
    expect(await service.read()).toMatchObject(confirmed)
  })

  it("the result of a bundled text or of a fallback has the fields of a resolved prompt as its data", async () => {
    const service = makeService({ bundle })
    service.respondWith(serviceUnavailable)
    expect((await service.read()).data).toMatchObject({
      id,
      title: "Bundled",
      prompt_type: "system",
      target_model: "gpt-4o",
      resolved_content: "Bundled {{shop}}",
      fragment_count: 2
    })
    const fallback = {
      id: "refund",
      title: "",
      prompt_type: undefined,
      target_model: "",
      resolved_content: "Text",
      fragment_count: 0
    }
    const read = async (prompt: string | PromptReference) =>
      (await service.client.prompts.getResolved(prompt, { fallback: "Text" })).data
    expect(await read("refund")).toMatchObject(fallback)
    expect(await read({ name: "refund", type: "user", model: "gpt-4o", slots: [] })).toMatchObject({
      ...fallback,
      prompt_type: "user",
      target_model: "gpt-4o"
    })
  })

  it("traceAttributes names the prompt as the call did, its version, and where the text comes from", async () => {
    const service = makeService({ bundle })
    service.respondWith(respondWithText("a", headers))
    const read = async (name: string) =>
      JSON.parse(JSON.stringify(traceAttributes(await service.read({ fallback: "Text" }, name))))
    expect(await read("support-agent")).toEqual({
      "gen_ai.prompt.name": "support-agent",
      "gen_ai.prompt.version": "3",
      "prompt_retrieval.prompt.id": id,
      "prompt_retrieval.prompt.etag": '"a"',
      "prompt_retrieval.prompt.source": "fresh",
      "prompt_retrieval.prompt.age_ms": 0,
      "prompt_retrieval.prompt.request_id": "req-1"
    })
    service.respondWith(serviceUnavailable)
    expect(await read("bundled")).toEqual({
      "gen_ai.prompt.name": "bundled",
      "gen_ai.prompt.version": "7",
      "prompt_retrieval.prompt.id": id,
      "prompt_retrieval.prompt.source": "bundled"
    })
    expect(await read("refund")).toEqual({
      "gen_ai.prompt.name": "refund",
      "prompt_retrieval.prompt.source": "fallback"
    })
  })

  it("without a Prompt-Version header, `version` is the version in the body, if any", async () => {
    const { client } = makeScriptedClient([
      () => jsonResponse(200, { data: { current_version: 5 } }),
      () => jsonResponse(200, { data: { version_number: 6 } }),
      () => jsonResponse(200, { data: [], meta: { page: 1, per_page: 20, total: 0 } })
    ])
    expect((await client.prompts.get("p")).version).toBe(5)
    expect((await client.prompts.versions.get("p", 6)).version).toBe(6)
    expect((await client.prompts.list()).version).toBeUndefined()
  })

  it("asResponse and withResponse give the headers of the response, even for a cached result", async () => {
    const respond = respondWithText("a", { ...headers, "x-cache": "MISS" })
    const { client } = makeScriptedClient([respond], { cache: {} })
    for (const source of ["fresh", "cached"]) {
      const call = client.prompts.getResolved("p")
      const response = await call.asResponse()
      expect([response!.status, response!.headers.get("X-Cache")]).toEqual([200, "MISS"])
      const result = await call.withResponse()
      expect([result.response, result.data.resolved_content, result.source]).toEqual([response, "a", source])
    }
  })

  it.each([
    ['"prompt-retrieval"; hit; detail="database-unavailable"', "stale"],
    ["ExampleCDN; fwd=miss, prompt-retrieval;hit;detail=database-unavailable", "stale"],
    ["ExampleCDN; hit; detail=database-unavailable", "fresh"],
    ["prompt-retrieval; hit", "fresh"],
    ["prompt-retrieval; hit, ExampleCDN; detail=database-unavailable", "fresh"]
  ])("the result of a response with Cache-Status: %s has the source %s", async (value, source) => {
    const service = makeService()
    service.respondWith(respondWithText("a", { "cache-status": value }))
    expect((await service.read()).source).toBe(source)
  })
})
