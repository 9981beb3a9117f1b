import type { HttpResponse } from "../HttpMessage.ts"

/**
 * The value of the header `Cache-Status` during an outage (RFC 9211): the name of this service, and the reason why the
 * response comes from its cache.
 */
const outageCacheStatus = "prompt-retrieval; hit; detail=database-unavailable"

/**
 * Converts a cached 200 or 304 to the response during an outage of the database. Other caches must not store this
 * response, because they would serve it for longer than this service may. The response keeps its ETag, so that callers
 * can still make conditional requests.
 *
 * @param ageMs the time since the response was last known to be current, in milliseconds; the header `Age` has this
 * time in seconds, rounded up
 */
export const toOutageResponse = (response: HttpResponse, ageMs: number): HttpResponse => {
  const headers = [...response.headers]
  headers[headers.indexOf("cache-control") + 1] = "no-store"
  headers.push("age", String(Math.ceil(ageMs / 1_000)), "cache-status", outageCacheStatus)
  return { ...response, headers }
}
