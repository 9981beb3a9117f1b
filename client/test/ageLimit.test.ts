import { describe, expect, it, vi } from "vitest"
import {
  advance,
  flush,
  useFakeTime,
  jsonResponse,
  makeScriptedClient,
  type Responder,
  promptId
} from "./support.ts"

// `cacheModel.test.ts` checks the age limit for sequences of calls that do not overlap.

useFakeTime()

const respond = (title: string) => jsonResponse(200, { data: { title } })

/** Makes a client. The test responds to the requests of the client, in any order. */
const makeManualClient = (cache: { readonly ttl: number; readonly maxStale: number }) => {
  const pending: Array<(title: string) => void> = []
  const respondLater: Responder = () =>
    new Promise((resolve) => pending.push((title) => resolve(respond(title))))
  return { ...makeScriptedClient([respondLater], { cache }), pending }
}

describe("the age limit of texts that arrive late", () => {
  it("a response is discarded and requested again if its request started too long ago because the machine was suspended", async () => {
    const { client, pending } = makeManualClient({ ttl: 1_000, maxStale: 1_000 })
    const call = client.prompts.get(promptId)
    await flush()
    vi.setSystemTime(Date.now() + 3_600_000)
    pending[0]!("an hour old")
    await flush()
    expect(pending).toHaveLength(2)
    pending[1]!("current")
    const { data, source, age } = await call
    expect([data.title, source, age]).toEqual(["current", "fresh", 0])
    expect((await client.prompts.get(promptId)).data.title).toBe("current")
  })

  it.each([
    ["10, 400", 10_000],
    ["7", 7_000],
    ["soon", 0],
    ["-5", 0]
  ])("the result of a response with Age: %s has an age of %i ms", async (age, expected) => {
    const { client } = makeScriptedClient([() => jsonResponse(200, { data: { title: "a" } }, { age })], {
      cache: { ttl: 1_000_000, maxStale: 0 }
    })
    expect((await client.prompts.get(promptId)).age).toBe(expected)
  })

  it("a call does not share the text of a request that started too long before the call", async () => {
    const { client, pending } = makeManualClient({ ttl: 0, maxStale: 1_000 })
    const early = client.prompts.get(promptId)
    await advance(1_000)
    const joined = client.prompts.get(promptId)
    await advance(1)
    const late = client.prompts.get(promptId)
    await flush()
    expect(pending).toHaveLength(1)
    pending[0]!("first")
    expect((await early).data.title).toBe("first")
    expect((await joined).data.title).toBe("first")
    await flush()
    expect(pending).toHaveLength(2)
    pending[1]!("second")
    expect((await late).data.title).toBe("second")
  })
})
