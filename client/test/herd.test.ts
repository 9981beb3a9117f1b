import { beforeEach, expect, it } from "vitest"
import { PromptClient } from "../src/index.ts"
import { advance, connectionRefused, spreadRandomValues, textResponse, useFakeTime } from "./support.ts"

const clientCount = 2_000
const clientsPerKey = 20
/** The default limit of a key, in requests per minute. */
const keyLimit = 100
const ttl = 30_000
/** The time between two reads of an application, in milliseconds. */
const readInterval = 2_000
const step = 100
/** The duration of the outage, in milliseconds. */
const outageLength = 60_000
/** All clients must have fresh texts at most this long after the outage, in milliseconds. */
const recoveryLimit = 30_000

useFakeTime()
beforeEach(spreadRandomValues)

// `getStart` returns when a client starts. `share` is the client's index divided by `clientCount`.
it.each<[description: string, getStart: (share: number) => number, outageStart: number, sources: string]>([
  ["with cached texts", (share) => share * ttl, 90_000, "cached,fresh,stale"],
  ["that start one after another in the outage", (share) => share * 50_000, 0, "cached,fallback,fresh,stale"],
  [
    "that start within 2 s, 28 s before the end of the outage",
    (share) => 32_000 + share * readInterval,
    0,
    "cached,fallback,fresh,stale"
  ]
])(
  "after an outage of 60 s, 2,000 clients at most double their request rate, stay within the limits of their keys, and get fresh texts within 30 s: clients %s",
  async (_, getStart, outageStart, expectedSources) => {
    const start = performance.now()
    const outageEnd = outageStart + outageLength
    const arrivals: Array<{ readonly at: number; readonly client: number; readonly key: number }> = []
    const sources = new Set<string>()
    const clients = Array.from({ length: clientCount }, (_, client) => {
      const key = Math.floor(client / clientsPerKey)
      return new PromptClient({
        apiKey: `key_live_${String(key).padStart(64, "0")}`,
        cache: { ttl },
        fetch: async () => {
          const at = performance.now() - start
          if (at >= outageStart && at < outageEnd) return connectionRefused()
          arrivals.push({ at: at - outageEnd, client, key })
          return textResponse("a")
        }
      })
    })
    for (let now = 0; now < outageEnd + 60_000; now += step) {
      for (const [index, client] of clients.entries()) {
        const startsAt = Math.floor(getStart(index / clientCount) / step) * step
        if (now >= startsAt && (now - startsAt) % readInterval === 0)
          client.prompts.getResolved("p", { fallback: "f" }).then(({ source }) => sources.add(source))
      }
      await advance(step)
    }
    expect([...sources].sort().join()).toBe(expectedSources)
    const after = arrivals.filter(({ at }) => at >= 0)
    const getLargestGroup = (toGroup: (arrival: (typeof arrivals)[number]) => number) =>
      Math.max(...[...Map.groupBy(after, toGroup).values()].map(({ length }) => length))
    // Without an outage, every client sends one request per `ttl`.
    const usualRate = (clientCount / ttl) * 1_000
    expect(getLargestGroup(({ at }) => Math.floor(at / 1_000))).toBeLessThanOrEqual(2 * usualRate)
    expect(getLargestGroup(({ key }) => key)).toBeLessThanOrEqual(keyLimit)
    const recovered = after.filter(({ at }) => at <= recoveryLimit)
    expect(new Set(recovered.map(({ client }) => client)).size).toBe(clientCount)
  }
)
