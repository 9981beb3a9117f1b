import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import {
  computeCacheShares,
  computeResponseShares,
  countDistinct,
  type Lifetimes
} from "../../bench/scaling/edgeCache.ts"
import { makeSampler, makeZipfShares } from "../../bench/scaling/zipf.ts"
import { makeRandom } from "../support/random.ts"

/** Sends requests at random times to a cache that follows RFC 9111 and RFC 5861, and counts what it does. */
const simulate = (rate: number, { fresh, stale }: Lifetimes, requests: number) => {
  const { uniform } = makeRandom(requests)
  let [time, fetchedAt, origin, waiting, storedTime] = [0, Number.NEGATIVE_INFINITY, 0, 0, 0]
  for (let i = 0; i < requests; i++) {
    time -= Math.log(1 - uniform()) / rate
    const age = time - fetchedAt
    if (age <= fresh) continue
    origin++
    if (age > fresh + stale) waiting++
    storedTime += i === 0 ? 0 : Math.min(age, fresh + stale)
    fetchedAt = time
  }
  return { origin: origin / requests, waiting: waiting / requests, entries: storedTime / fetchedAt }
}

const Rate = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000 }))
const Locations = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))
const Seconds = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 600 }))

describe("computeResponseShares", () => {
  it.each([
    [0.001, 30, 300],
    [0.01, 30, 300],
    [0.1, 30, 300],
    [1, 30, 300],
    [5, 30, 300],
    [0.1, 30, 0],
    [0.1, 0, 10],
    [2, 1, 1]
  ])("agrees with a simulated cache at %d requests/s, %d s fresh and %d s stale", (rate, fresh, stale) => {
    const computed = computeResponseShares(rate, { fresh, stale })
    const simulated = simulate(rate, { fresh, stale }, 400_000)
    for (const name of ["origin", "waiting", "entries"] as const)
      assert.isAtMost(
        Math.abs(computed[name] - simulated[name]),
        0.02 * computed[name] + 1e-3,
        `${name}: computed ${computed[name]}, simulated ${simulated[name]}`
      )
  })
})

describe("computeCacheShares", () => {
  it.prop(
    "never fetches a response more often than once per location and fresh time",
    { rate: Rate, locations: Locations, fresh: Seconds, stale: Seconds },
    ({ rate, locations, fresh, stale }) => {
      const shares = makeZipfShares(100, 1)
      const cache = { shares, requestsPerSecond: rate, locations, lifetimes: { fresh, stale } }
      const { origin, waiting, entries } = computeCacheShares(cache)
      assert.isAtMost(waiting, origin * (1 + 1e-9))
      assert.isAtMost(origin, 1 + 1e-9)
      assert.isAtMost(origin * rate * fresh, shares.length * locations)
      assert.isAtMost(entries, shares.length * (1 + 1e-9))
    }
  )

  it.prop(
    "sends more requests to the origin when the same requests are divided over more locations",
    { rate: Rate, locations: Locations },
    ({ rate, locations }) => {
      const compute = (locations: number) =>
        computeCacheShares({
          shares: makeZipfShares(100, 1),
          requestsPerSecond: rate,
          locations,
          lifetimes: { fresh: 30, stale: 300 }
        }).origin
      assert.isAbove(compute(locations + 1), compute(locations))
    }
  )
})

describe("countDistinct", () => {
  it("agrees with the number of different indices that a sampler draws", () => {
    const shares = makeZipfShares(10_000, 1)
    const sample = makeSampler(shares, makeRandom(2).uniform)
    for (const requests of [100, 10_000, 200_000]) {
      const drawn = new Set(Array.from({ length: requests }, sample)).size
      assert.isAtMost(Math.abs(countDistinct(shares, requests) / drawn - 1), 0.05, `${requests} requests`)
    }
  })
})
