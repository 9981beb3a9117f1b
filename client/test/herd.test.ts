import { beforeEach, expect, it } from "vitest"
import { PromptClient } from "../src/index.ts"
import { advance, connectionRefused, jsonResponse, spreadRandomValues, useFakeTime } from "./support.ts"

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
beforeEach(spreadRandomValues)

interface Scenario {
  /** Returns the start time of a client, in milliseconds. */
  readonly getStart: (client: number) => number
  readonly outageStart: number
  readonly end: number
}

/**
 * Runs 2,000 clients. Expects that after the outage their requests stay within the limits, and that all have fresh texts
 * soon. Returns the sources of their texts.
 */
const simulate = async ({ getStart, outageStart, end }: Scenario) => {
  const start = performance.now()
  const elapsed = () => performance.now() - start
  const outageEnd = outageStart + outageLength
  const arrivals: Array<{ readonly at: number; readonly client: number }> = []
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
        return jsonResponse(200, { data: { title: "a" } })
      }
    })
  })
  for (let now = 0; now < end; now += step) {
    for (const [index, client] of clients.entries()) {
      const startsAt = Math.floor(getStart(index) / step) * step
      if (now >= startsAt && (now - startsAt) % readInterval === 0)
        client.prompts.getResolved("p", { fallback: "f" }).then(({ source }) => sources.add(source))
    }
    await advance(step)
  }
  const select = (from: number, until: number) => arrivals.filter(({ at }) => at >= from && at < until)
  const countLargest = <A>(items: ReadonlyArray<A>, toGroup: (item: A) => number) =>
    Math.max(...[...Map.groupBy(items, toGroup).values()].map(({ length }) => length))
  // Every client sends one request per `ttl`.
  const usualRate = (clientCount / ttl) * 1_000
  expect(countLargest(select(outageEnd, end), ({ at }) => Math.floor(at / 1_000))).toBeLessThanOrEqual(
    2 * usualRate
  )
  const recovered = select(outageEnd, outageEnd + recoveryLimit + 1)
  expect(new Set(recovered.map(({ client }) => client)).size).toBe(clientCount)
  const sentInMinute = select(outageEnd, outageEnd + 60_000)
  expect(countLargest(sentInMinute, ({ client }) => Math.floor(client / clientsPerKey))).toBeLessThanOrEqual(
    keyLimit
  )
  return [...sources].sort()
}

it("after an outage of 60 s, 2,000 clients with cached texts at most double their rate, and have fresh texts within 30 s", async () => {
  const getStart = (client: number) => (client / clientCount) * ttl
  expect(await simulate({ getStart, outageStart: 90_000, end: 210_000 })).toEqual([
    "cached",
    "fresh",
    "stale"
  ])
})

it.each<[description: string, getStart: Scenario["getStart"]]>([
  ["one after another in the first 50 s of the outage", (client) => (client / clientCount) * 50_000],
  [
    "within 2 s, 28 s before the end of the outage",
    (client) => 32_000 + (client / clientCount) * readInterval
  ]
])(
  "after an outage of 60 s, 2,000 clients with empty caches at most double their rate, and have fresh texts within 30 s: %s",
  async (_, getStart) => {
    const sources = await simulate({ getStart, outageStart: 0, end: outageLength + 2 * recoveryLimit })
    expect(sources).toEqual(["cached", "fallback", "fresh", "stale"])
  }
)
