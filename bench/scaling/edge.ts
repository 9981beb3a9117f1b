/** Computes the share of the requests that caches in front of the service send to the service. */
import {
  sharedMaxAgeSeconds,
  staleWhileRevalidateSeconds
} from "../../src/adapters/inbound/http/response/Representation.ts"
import { zipfExponent } from "./context.ts"
import { type CacheShares, computeCacheShares, countDistinct } from "./edgeCache.ts"
import { makeZipfShares } from "./zipf.ts"

/** The number of different responses that are requested. */
export const edgeResponses = 1_000_000
export const edgeRates = [1_000, 10_000, 100_000, 1_000_000] as const
/** The numbers of caches: one, one in each region of the plan, and one in each location without a common cache. */
export const edgeLocations = [1, 3, 60] as const

export interface EdgeRow extends CacheShares {
  readonly requestsPerSecond: number
  readonly locations: number
}

const shares = makeZipfShares(edgeResponses, zipfExponent)

/** Computes the shares for caches with the lifetimes of the service's `Cache-Control`. */
export const computeEdge = (requestsPerSecond: number, locations: number): CacheShares =>
  computeCacheShares({
    shares,
    requestsPerSecond,
    locations,
    lifetimes: { fresh: sharedMaxAgeSeconds, stale: staleWhileRevalidateSeconds }
  })

/** Returns the number of different responses that a number of requests ask for. */
export const countRequested = (requests: number): number => countDistinct(shares, requests)

export const makeEdgeRows = (): ReadonlyArray<EdgeRow> =>
  edgeLocations.flatMap((locations) =>
    edgeRates.map((requestsPerSecond) => ({
      requestsPerSecond,
      locations,
      ...computeEdge(requestsPerSecond, locations)
    }))
  )
