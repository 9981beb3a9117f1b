import { describe, expect, it, vi } from "vitest"
import { AbortError, TimeoutError } from "../src/index.ts"
import {
  advance,
  captureError,
  flush,
  jsonResponse,
  makeScriptedClient,
  neverResponds,
  settle,
  useFakeTimeWithoutJitter,
  promptId
} from "./support.ts"
import { cache, makeCachingClient, ok, revalidatable } from "./cachingClient.ts"

useFakeTimeWithoutJitter()

describe("concurrent reads of the same target", () => {
  it("calls share a request only if query, timeout and maxRetries are equal", async () => {
    const page = { data: [], meta: { page: 1, per_page: 20, total: 0 } }
    const { client, requests } = makeCachingClient([() => jsonResponse(200, { ...page })])
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

  it("a shared request survives the abort of one caller and is aborted when its last caller aborts", async () => {
    let respond: (response: Response) => void = () => {}
    const { client, requests } = makeCachingClient([
      ({ signal }) =>
        new Promise<Response>((resolve, reject) => {
          respond = resolve
          signal.addEventListener("abort", () => reject(signal.reason))
        }),
      () => ok("b")
    ])
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()]
    const one = client.prompts.get(promptId, { signal: first.signal })
    const two = client.prompts.get(promptId, { signal: second.signal })
    await flush()
    first.abort("one")
    expect(await captureError(one)).toEqual(new AbortError("The call was aborted", { cause: "one" }))
    expect(requests[0]!.signal.aborted).toBe(false)
    respond(ok("a"))
    expect((await two).data.title).toBe("a")

    const alone = makeScriptedClient([neverResponds, () => ok("c")], { cache })
    const call = alone.client.prompts.get(promptId, { signal: third.signal })
    await flush()
    third.abort()
    expect(await captureError(call)).toBeInstanceOf(AbortError)
    await flush()
    expect(alone.requests[0]!.signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
    expect((await alone.client.prompts.get(promptId)).data.title).toBe("c")
  })

  it("a call that joins a request has its own timeout and sends a new request if the shared request times out", async () => {
    const { client, requests } = makeCachingClient([neverResponds, neverResponds, () => ok("a")], {
      timeout: 1_000
    })
    const early = client.prompts.get(promptId).catch((error) => error)
    await advance(600)
    const late = client.prompts.get(promptId)
    await advance(400)
    expect(await early).toEqual(new TimeoutError("No result within 1000 ms"))
    // The shared request has timed out, but the late call has not.
    expect(requests).toHaveLength(2)
    expect(await settle(late)).toEqual({ error: new TimeoutError("No result within 1000 ms"), took: 600 })
    expect((await client.prompts.get(promptId)).data.title).toBe("a")
    expect(vi.getTimerCount()).toBe(0)
  })

  it("a background refresh survives the abort of the call that started the refresh and of a call that joined the refresh", async () => {
    const { client, read, requests } = makeCachingClient([revalidatable("a"), neverResponds])
    await read()
    await advance(9_999)
    const [starter, joiner] = [new AbortController(), new AbortController()]
    expect(await read("p", { signal: starter.signal })).toEqual(["a", "stale", 0])
    starter.abort()
    await advance(1)
    expect(requests[1]!.signal.aborted).toBe(false)
    const joined = client.prompts.get(promptId, { signal: joiner.signal, timeout: 10_000 })
    await flush()
    joiner.abort()
    expect(await captureError(joined)).toBeInstanceOf(AbortError)
    expect(requests).toHaveLength(2)
    expect(requests[1]!.signal.aborted).toBe(false)
  })
})
