import { expect, it } from "vitest"
import { traceAttributes } from "../src/index.ts"
import { makeBundle } from "./pull/bundles.ts"
import {
  advance,
  awaitValue,
  flush,
  jsonResponse,
  makeScriptedClient,
  serviceUnavailable,
  textResponse,
  useFakeTime
} from "./support.ts"

useFakeTime(0)

const headers = { etag: '"a"', "prompt-version": "3", "x-request-id": "req-1", "x-cache": "MISS" }

it("every result has the non-enumerable properties version, etag, source, age and requestId", async () => {
  const { client, respondWith } = makeScriptedClient([() => textResponse("a", headers)], {
    cache: { ttl: 1_000, maxStale: 1_000 }
  })
  const read = () => client.prompts.getResolved("p")
  const expected = { version: 3, etag: '"a"', requestId: "req-1" }
  expect(await read()).toMatchObject({ ...expected, source: "fresh", age: 0 })
  await advance(400)
  const cached = await read()
  expect(cached).toMatchObject({ ...expected, source: "cached", age: 400 })
  expect(Object.keys(cached)).toEqual(["data"])
  respondWith(
    () => new Response(null, { status: 304, headers: { "prompt-version": "4", "x-request-id": "req-2" } })
  )
  await advance(800)
  expect(await read()).toMatchObject({ ...expected, source: "stale", age: 1_200 })
  await flush()
  // The 304 confirmed the text of version 3 as the text of version 4.
  const confirmed = { version: 4, etag: '"a"', requestId: "req-2", source: "cached", age: 0 }
  expect(await read()).toMatchObject(confirmed)
})

it("traceAttributes returns the name that the call used, the version of the prompt, and the source of the text", async () => {
  const bundle = makeBundle({ name: "bundled", version: 7 })
  const { client, respondWith } = makeScriptedClient([() => textResponse("a", headers)], { bundle })
  const read = async (name: string) => {
    const result = await awaitValue(client.prompts.getResolved(name, { fallback: "Text" }))
    return JSON.parse(JSON.stringify(traceAttributes(result)))
  }
  const toAttributes = (name: string, version?: string, id?: string) => ({
    "gen_ai.prompt.name": name,
    ...(version && { "gen_ai.prompt.version": version, "prompt_retrieval.prompt.id": id })
  })
  expect(await read("support-agent")).toEqual({
    ...toAttributes("support-agent", "3", "p"),
    "prompt_retrieval.prompt.etag": '"a"',
    "prompt_retrieval.prompt.source": "fresh",
    "prompt_retrieval.prompt.age_ms": 0,
    "prompt_retrieval.prompt.request_id": "req-1"
  })
  respondWith(serviceUnavailable)
  expect(await read("bundled")).toEqual({
    ...toAttributes("bundled", "7", bundle.prompts[0]!.id),
    "prompt_retrieval.prompt.source": "bundled"
  })
  expect(await read("refund")).toEqual({
    ...toAttributes("refund"),
    "prompt_retrieval.prompt.source": "fallback"
  })
})

it("without a Prompt-Version header, the version of a result is the version in the body, or undefined", async () => {
  const { client } = makeScriptedClient([
    () => jsonResponse(200, { data: { current_version: 5 } }),
    () => jsonResponse(200, { data: { version_number: 6 } }),
    () => jsonResponse(200, { data: [], meta: { page: 1, per_page: 20, total: 0 } })
  ])
  expect((await client.prompts.get("p")).version).toBe(5)
  expect((await client.prompts.versions.get("p", 6)).version).toBe(6)
  expect((await client.prompts.list()).version).toBeUndefined()
})

it("asResponse and withResponse return the headers of the response, even for a cached result", async () => {
  const { client } = makeScriptedClient([() => textResponse("a", headers)], { cache: {} })
  for (const source of ["fresh", "cached"]) {
    const call = client.prompts.getResolved("p")
    const response = await call.asResponse()
    expect([response!.status, response!.headers.get("X-Cache")]).toEqual([200, "MISS"])
    expect(await call.withResponse()).toMatchObject({ response, source })
  }
})

it.each([
  [{ "cache-status": '"prompt-retrieval"; hit; detail="database-unavailable"' }, "stale", 0],
  [{ "cache-status": "ExampleCDN; fwd=miss, prompt-retrieval;hit;detail=database-unavailable" }, "stale", 0],
  [{ "cache-status": "ExampleCDN; hit; detail=database-unavailable" }, "fresh", 0],
  [{ "cache-status": 'edge; key="prompt-retrieval"; detail=database-unavailable' }, "fresh", 0],
  [{ "cache-status": "prompt-retrieval; hit, ExampleCDN; detail=database-unavailable" }, "fresh", 0],
  [{ age: "10, 400" }, "fresh", 10_000],
  [{ age: "soon" }, "fresh", 0],
  [{ age: "-5" }, "fresh", 0]
] as const)(
  "the result of a response with the header %j has the source %s and an age of %i ms",
  async (header, source, age) => {
    const { client } = makeScriptedClient([() => textResponse("a", header)])
    expect(await client.prompts.getResolved("p")).toMatchObject({ source, age })
  }
)
