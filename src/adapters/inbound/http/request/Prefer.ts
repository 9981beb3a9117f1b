import type { HttpRequest } from "../HttpMessage.ts"

/** A longer wait counts as this time, in seconds. */
const maxWaitSeconds = 50

/** Matches the next preference of a `Prefer` header (RFC 7240): its name, and its value as a quoted string or a token. */
const preferencePattern =
  /[\s,]*([\w!#$%&'*+\-.^`|~]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([\w!#$%&'*+\-.^`|~]+)))?\s*(?:;(?:[^",]|"(?:[^"\\]|\\.)*")*)?(?:,|$)/gy

/**
 * Returns the seconds for which a request may wait for a change, or `undefined` if it does not wait. Only a conditional
 * GET may wait. The seconds are the value of the first preference `wait`. If this value is 0 or malformed, the
 * preference is ignored.
 */
export const findWaitSeconds = ({ method, headers, startWait }: HttpRequest): number | undefined => {
  const { prefer, "if-none-match": ifNoneMatch } = headers
  if (prefer === undefined || ifNoneMatch === undefined || method !== "GET" || startWait === undefined)
    return undefined
  for (const [, name, quoted, token] of prefer.matchAll(preferencePattern)) {
    if (name?.toLowerCase() !== "wait") continue
    const value = quoted ?? token ?? ""
    const seconds = /^\d+$/.test(value) ? Math.min(Number(value), maxWaitSeconds) : 0
    return seconds === 0 ? undefined : seconds
  }
  return undefined
}
