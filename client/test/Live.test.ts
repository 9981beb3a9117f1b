import { afterEach, beforeEach, expect, it, vi } from "vitest"
import type { Fetch, PromptClient, PromptSelection } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { makeFaultyService } from "./faultyService.ts"
import {
  advance,
  captureError,
  errorResponse,
  flush,
  neverResponds,
  spreadRandomValues,
  useFakeTime
} from "./support.ts"

// `liveModel.test.ts` checks the states of one page for all orders of events.

const ttl = 30_000
/** The time that a live request waits with this `ttl`, in milliseconds. */
const wait = 25_000

useFakeTime()
// Node emits a warning if an AbortSignal has too many listeners.
beforeEach(() => void vi.spyOn(process, "emitWarning"))
afterEach(() => expect(process.emitWarning).not.toHaveBeenCalled())

it("getResolved returns a live prompt from memory, by its name or id, without a request", async () => {
  const { client, live, read, state, service } = makeFaultyService(1)
  service.set({ name: "prompt-0", content: "Text 0", version: 3 })
  await using _ = await live({ tag: "production" })
  expect(service.requests[0]).toBe("/api/v1/resolved?page=1&per_page=100&tag=production&names=true")
  await advance(1_000)
  const result = await client.prompts.getResolved("prompt-0").withResponse()
  expect(result).toMatchObject({ version: 3, age: 1_000, response: { status: 200 } })
  expect([result.etag, result.requestId]).toEqual([undefined, result.response!.headers.get("x-request-id")])
  Object.assign(result.data, { resolved_content: "changed by the caller" })
  for (const prompt of ["prompt-0", "p0"]) expect(await read(prompt)).toBe("Text 0 (live)")
  expect(state.sent).toBe(2)
})

it("live prompts reflect an edit, a new prompt and a removal immediately, and onChange gets the names of changed and new prompts", async () => {
  for (const selection of [{}, ["prompt-0", "prompt-1", "new", { name: "prompt-1", slots: [] }]]) {
    const { live, read, service } = makeFaultyService(2)
    const changes: Array<string> = []
    await using _ = await live(selection, { onChange: (prompt) => changes.push(prompt) })
    for (const name of ["prompt-1", "new"]) {
      service.set({ name, content: `${name} is new` })
      await flush()
      expect(await read(name)).toBe(`${name} is new (live)`)
    }
    service.set({ name: "prompt-1", content: "prompt-1 is new", version: 2 })
    service.remove("prompt-0")
    await flush()
    expect(await read("prompt-0")).toBe("NotFoundError")
    expect(changes).toEqual(["prompt-1", "new"])
  }
})

it.each([
  [3_600_000, 50],
  [30_000, 25],
  [0, 1]
])("with a ttl of %i ms, live waits for %i s with one request per page", async (ttl, seconds) => {
  const { live, state } = makeFaultyService(150, { cache: { ttl } })
  const waits = new Set<string | undefined>()
  await using _ = await live({})
  const { sent } = state
  state.fault = ({ headers }) => void waits.add(headers.prefer)
  await advance(10 * seconds * 1_000)
  expect([...waits]).toEqual([`wait=${seconds}`])
  expect(state.sent - sent).toBe(20)
})

it("a live prompt that moves to another page stays current, and client.live reads as many pages as the prompts need", async () => {
  const { live, read, service, state } = makeFaultyService(150)
  const changes: Array<string> = []
  await using _ = await live({}, { onChange: (prompt) => changes.push(prompt) })
  service.remove("prompt-0")
  await flush()
  expect(await read("prompt-100")).toBe("Text 100 (live)")
  for (let index = 1; index < 60; index++) service.remove(`prompt-${index}`)
  await advance(wait)
  expect(await read("prompt-149")).toBe("Text 149 (live)")
  const { sent } = state
  await advance(wait)
  expect(state.sent).toBe(sent + 1)
  for (let index = 0; index < 120; index++) service.set({ name: `new-${index}`, content: `New ${index}` })
  await flush()
  expect(await read("new-119")).toBe("New 119 (live)")
  expect(changes.filter((name) => name.startsWith("prompt"))).toEqual([])
})

it("close() and await using end all requests and timers of live prompts, and later calls read from the service", async () => {
  const { live, read, client, service, state } = makeFaultyService(150)
  const one = await live({})
  {
    await using _ = await client.live(["prompt-0"])
  }
  expect(await read("prompt-0")).toBe("Text 0 (live)")
  one.close()
  one.close()
  await flush()
  expect(vi.getTimerCount()).toBe(0)
  expect(await read("prompt-0")).toBe("Text 0 (fresh)")
  const { sent } = state
  service.set({ name: "prompt-0", content: "Edited" })
  await advance(600_000)
  expect(state.sent).toBe(sent)
})

it("live and prefetch reject with a TypeError if the selection is neither a filter nor an array of prompts", async () => {
  const { client, state } = makeFaultyService(1, { cache: {} })
  const error = new TypeError("selection must be a filter or an array")
  for (const value of ["prompt-0", undefined, null, 7, new Set(["prompt-0"])])
    for (const load of ["live", "prefetch"] as const)
      expect(await captureError(client[load](value as PromptSelection))).toEqual(error)
  expect(await captureError(client.live([""]))).toEqual(new TypeError("prompt must be a name or an id"))
  expect(state.sent).toBe(0)
})

it("live resolves while the service is not available, and loads the prompts later", async () => {
  const { live, read, state } = makeFaultyService(150, { timeout: 1_000 })
  state.fault = neverResponds
  await using _ = await live({})
  state.fault = undefined
  await advance(2 * ttl)
  expect(await read("prompt-149")).toBe("Text 149 (live)")
})

it.each([401, 404])(
  "if the service responds with %i, live rejects and sends no further request",
  async (status) => {
    for (const page of [1, 2]) {
      const { client, state } = makeFaultyService(150)
      state.fault = ({ url }) => (url.includes(`page=${page}`) ? errorResponse(status) : undefined)
      expect(await captureError(client.live({}))).toMatchObject({ status })
      const { sent } = state
      await advance(600_000)
      expect(state.sent).toBe(sent)
    }
  }
)

it.each([
  ["ends all waits", true],
  ["is killed", false]
] as const)(
  "if the service %s and restarts 3 s later, 1,000 live clients at most double their request rate, and wait again within 60 s",
  async (_, isOrderly) => {
    const service = new FakeService({ prompts: [{ name: "prompt-0", content: "Text" }] })
    let isUp = true
    let sent = 0
    const fetch: Fetch = async (url, init) => {
      sent++
      const wasUp = isUp
      return (service.fetch(url, init) as Promise<Response>).catch((error) => {
        if (wasUp && isOrderly) return new Response(null, { status: 304 })
        throw error
      })
    }
    spreadRandomValues()
    await using lives = new AsyncDisposableStack()
    const clients: Array<PromptClient> = []
    const count = 1_000
    while (clients.length < count) {
      const client = service.connect().withOptions({ fetch })
      lives.use(await client.live({}))
      clients.push(client)
      if (clients.length % 40 === 0) await advance(1_000)
    }
    isUp = false
    service.failWith("no connection")
    const usual = count / (wait / 1_000)
    for (let second = 0; second < 60; second++) {
      if (second === 3) service.failWith(undefined)
      sent = 0
      await advance(1_000)
      expect(sent).toBeLessThanOrEqual(2 * usual)
    }
    for (const { prompts } of clients) expect((await prompts.getResolved("prompt-0")).source).toBe("live")
  }
)
