import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { PromptClient } from "../src/index.ts"
import { advance, connectionRefused, installFakeTime, jsonResponse } from "./support.ts"

const clientCount = 2_000
const clientsPerKey = 20
/** The default limit of a key, in requests per minute. */
const keyLimit = 100
const ttl = 30_000
/** How often an application reads its prompt, in milliseconds. */
const readInterval = 2_000
const step = 100
/** The times at which the clients have all started, the outage begins and ends, and the test ends. */
const [steady, outageStart, outageEnd, end] = [60_000, 90_000, 150_000, 185_000]

beforeEach(() => {
  installFakeTime()
  // Evenly distributed, in whatever order the clients draw.
  let value = 0
  vi.spyOn(Math, "random").mockImplementation(() => (value = (value + 0.6180339887) % 1))
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

it("after an outage of 60 s, 2,000 clients send at most twice their usual rate, and all have fresh texts within 30 s", async () => {
  const start = performance.now()
  const elapsed = () => performance.now() - start
  const arrivals: Array<{ readonly at: number; readonly client: number; readonly key: number }> = []
  let failedReads = 0
  const clients = Array.from({ length: clientCount }, (_, client) => {
    const key = Math.floor(client / clientsPerKey)
    return new PromptClient({
      apiKey: `key_live_${String(key).padStart(64, "0")}`,
      cache: { ttl },
      fetch: async () => {
        const at = elapsed()
        if (at >= outageStart && at < outageEnd) return connectionRefused()
        arrivals.push({ at, client, key })
        return jsonResponse(200, { data: { title: "a" } })
      }
    })
  })
  for (let now = 0; now < end; now += step) {
    for (const [index, client] of clients.entries()) {
      const startsAt = Math.floor(((index / clientCount) * ttl) / step) * step
      if (now >= startsAt && (now - startsAt) % readInterval === 0)
        client.prompts.get("p").catch(() => failedReads++)
    }
    await advance(step)
  }

  /** Counts the arrivals in each second from a time until another one. */
  const countPerSecond = (from: number, until: number) =>
    Array.from(
      { length: (until - from) / 1_000 },
      (_, second) => arrivals.filter(({ at }) => Math.floor((at - from) / 1_000) === second).length
    )
  const usual = countPerSecond(steady, outageStart)
  const usualRate = usual.reduce((sum, count) => sum + count) / usual.length
  expect(Math.max(...countPerSecond(outageEnd, end))).toBeLessThanOrEqual(2 * usualRate)
  const fresh = arrivals.filter(({ at }) => at >= outageEnd && at <= outageEnd + 30_000)
  expect(new Set(fresh.map(({ client }) => client)).size).toBe(clientCount)
  const countsOfKeys = Map.groupBy(fresh, ({ key }) => key)
  expect(Math.max(...[...countsOfKeys.values()].map(({ length }) => length))).toBeLessThanOrEqual(keyLimit)
  expect(failedReads).toBe(0)
})
