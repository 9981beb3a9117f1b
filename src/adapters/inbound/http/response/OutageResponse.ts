import type { HttpResponse } from "../HttpMessage.ts"

/** The name of this service in `Cache-Status`, and why the response comes from its cache (RFC 9211). */
export const outageCacheStatus = "prompt-retrieval; hit; detail=database-unavailable"

/**
 * Returns a cached 200 or 304 for an outage of the database. No cache may store it, because that would extend its age.
 * Its ETag stays, so that a caller that has it gets a 304.
 *
 * @param ageMs how long ago the response was known to be current, in milliseconds; `Age` is never less
 */
export const toOutageResponse = (response: HttpResponse, ageMs: number): HttpResponse => {
  const headers = [...response.headers]
  headers[headers.indexOf("cache-control") + 1] = "no-store"
  headers.push("age", String(Math.ceil(ageMs / 1_000)), "cache-status", outageCacheStatus)
  return { ...response, headers }
}
