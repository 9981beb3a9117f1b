/** How long a cache may serve a response, in seconds: fresh, and after that stale while it fetches the response again. */
export interface Lifetimes {
  readonly fresh: number
  readonly stale: number
}

/** The results of a cache for requests that arrive at random times. Every value except `entries` is a share of the requests. */
export interface CacheShares {
  /** Requests that cause a request to the origin. */
  readonly origin: number
  /** Requests that wait for the origin. The others are served from the cache, fresh or stale. */
  readonly waiting: number
  /** The mean number of responses that the cache may still serve. */
  readonly entries: number
}

/**
 * Computes the shares for one response by the rules of RFC 9111 and RFC 5861. Each fetch begins a cycle: the response
 * is fresh for a time, the first request after that time causes the next fetch, and that request waits only if the
 * response may no longer be served stale. A cycle therefore has one fetch and 1 + rate · fresh requests on average. The
 * response is assumed to arrive at once.
 *
 * @param rate requests per second, which arrive independently of each other
 */
export const computeResponseShares = (rate: number, { fresh, stale }: Lifetimes): CacheShares => {
  const origin = 1 / (1 + rate * fresh)
  const noRequestWhileStale = Math.exp(-rate * stale)
  return {
    origin,
    waiting: origin * noRequestWhileStale,
    entries: (rate * fresh + 1 - noRequestWhileStale) * origin
  }
}

/** A distributed cache in front of the service. */
export interface EdgeCache {
  /** The share of the requests that each response gets. */
  readonly shares: Float64Array
  readonly requestsPerSecond: number
  /** The number of caches that divide the requests evenly and share nothing. */
  readonly locations: number
  readonly lifetimes: Lifetimes
}

/** Computes the shares for many responses in several caches. `entries` is the number in each cache. */
export const computeCacheShares = ({
  shares,
  requestsPerSecond,
  locations,
  lifetimes
}: EdgeCache): CacheShares => {
  let [origin, waiting, entries] = [0, 0, 0]
  for (const share of shares) {
    const response = computeResponseShares((share * requestsPerSecond) / locations, lifetimes)
    origin += share * response.origin
    waiting += share * response.waiting
    entries += response.entries
  }
  return { origin, waiting, entries }
}

/** Returns the expected number of different responses among a number of requests. */
export const countDistinct = (shares: Float64Array, requests: number): number =>
  shares.reduce((sum, share) => sum - Math.expm1(-share * requests), 0)
