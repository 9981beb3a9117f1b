import { beforeEach, describe, expect, it, vi } from "vitest"
import { PromptClient } from "../src/index.ts"
import {
  advance,
  connectionRefused,
  jsonResponse,
  serviceUnavailable,
  useFakeTime,
  promptId
} from "./support.ts"

const clientCount = 2_000
const clientsPerKey = 20
/** The default limit of a key, in requests per minute. */
const keyLimit = 100
const ttl = 30_000
/** How often an application reads its prompt, in milliseconds. */
const readInterval = 2_000
const step = 100
/** How long the service is not available, in milliseconds. */
const outageLength = 60_000
/** How long after an outage all clients must have fresh texts, in milliseconds. */
const recoveryLimit = 30_000

useFakeTime()
beforeEach(() => {
  // Returns evenly distributed values, in whatever order the clients call `Math.random`.
  let value = 0
  vi.spyOn(Math, "random").mockImplementation(() => (value = (value + 0.6180339887) % 1))
})

interface Arrival {
  readonly at: number
  readonly client: number
}

interface Scenario {
  /** Returns the start time of a client, in milliseconds. */
  readonly getStart: (client: number) => number
  readonly outageStart: number
  /** How long the service responds 503 after the outage, in milliseconds. */
  readonly startUp?: number
  readonly end: number
}

/** Runs 2,000 clients. Returns the sources of their texts, and functions that count the requests to the service. */
const simulate = async ({ getStart, outageStart, startUp = 0, end }: Scenario) => {
  const start = performance.now()
  const elapsed = () => performance.now() - start
  const outageEnd = outageStart + outageLength
  const arrivals: Array<Arrival> = []
  const sources = new Set<string>()
  const clients = Array.from({ length: clientCount }, (_, client) => {
    const key = Math.floor(client / clientsPerKey)
    return new PromptClient({
      apiKey: `key_live_${String(key).padStart(64, "0")}`,
      cache: { ttl },
      fetch: async () => {
        const at = elapsed()
        if (at >= outageStart && at < outageEnd) return connectionRefused()
        arrivals.push({ at, client })
        return at >= outageEnd && at < outageEnd + startUp
          ? serviceUnavailable()
          : jsonResponse(200, { data: { title: "a" } })
      }
    })
  })
  for (let now = 0; now < end; now += step) {
    for (const [index, client] of clients.entries()) {
      const startsAt = Math.floor(getStart(index) / step) * step
      if (now >= startsAt && (now - startsAt) % readInterval === 0)
        client.prompts.getResolved(promptId, { fallback: "f" }).then(({ source }) => sources.add(source))
    }
    await advance(step)
  }
  /** Counts the requests that arrive in each second between two times. */
  const countPerSecond = (from: number, until: number) =>
    Array.from(
      { length: (until - from) / 1_000 },
      (_, second) => arrivals.filter(({ at }) => Math.floor((at - from) / 1_000) === second).length
    )
  const countClients = (from: number, until: number) =>
    new Set(arrivals.filter(({ at }) => at >= from && at <= until).map(({ client }) => client)).size
  /** Returns the number of requests of the key with the most requests. */
  const countPerKey = (from: number, until: number) => {
    const sent = arrivals.filter(({ at }) => at >= from && at < until)
    const byKey = Map.groupBy(sent, ({ client }) => Math.floor(client / clientsPerKey))
    return Math.max(...[...byKey.values()].map(({ length }) => length))
  }
  return { countPerSecond, countClients, countPerKey, sources }
}

/** Returns the start time of a client, in milliseconds. The start times are spread evenly over one read interval. */
const spread = (client: number): number => (client / clientCount) * readInterval

const average = (counts: ReadonlyArray<number>): number =>
  counts.reduce((sum, count) => sum + count) / counts.length

describe("after an outage of 60 s, 2,000 clients send at most twice their usual rate, and all have fresh texts within 30 s", () => {
  it("after an outage, clients with cached texts send at most twice their usual rate, and all have fresh texts within 30 s", async () => {
    /** The times at which all clients have started, the outage begins, the outage ends, and the test ends. */
    const [steady, outageStart, outageEnd, end] = [60_000, 90_000, 150_000, 210_000]
    const { countPerSecond, countClients, countPerKey, sources } = await simulate({
      getStart: (client) => (client / clientCount) * ttl,
      outageStart,
      end
    })
    const usualRate = average(countPerSecond(steady, outageStart))
    expect(Math.max(...countPerSecond(outageEnd, end))).toBeLessThanOrEqual(2 * usualRate)
    expect(countClients(outageEnd, outageEnd + recoveryLimit)).toBe(clientCount)
    expect(countPerKey(outageEnd, end)).toBeLessThanOrEqual(keyLimit)
    expect([...sources].sort()).toEqual(["cached", "fresh", "stale"])
  })

  it.each([
    [
      "one after another in the first 50 s of the outage",
      (client: number) => (client / clientCount) * 50_000,
      0
    ],
    ["within 2 s, 28 s before the end of the outage", (client: number) => 32_000 + spread(client), 0],
    [
      "one after another in the first 50 s, and the service responds 503 for 2 s at its start",
      (client: number) => (client / clientCount) * 50_000,
      2_000
    ]
  ])(
    "after an outage, clients that start with empty caches send at most twice their usual rate: %s",
    async (_, getStart, startUp) => {
      const ready = outageLength + startUp
      const end = ready + 2 * recoveryLimit
      const { countPerSecond, countClients, countPerKey, sources } = await simulate({
        getStart,
        outageStart: 0,
        startUp,
        end
      })
      const usualRate = average(countPerSecond(ready + recoveryLimit, end))
      expect(Math.max(...countPerSecond(outageLength, end))).toBeLessThanOrEqual(2 * usualRate)
      expect(countClients(ready, ready + recoveryLimit)).toBe(clientCount)
      expect(countPerKey(outageLength, outageLength + 60_000)).toBeLessThanOrEqual(keyLimit)
      expect([...sources].sort()).toEqual(["cached", "fallback", "fresh", "stale"])
    }
  )
})
