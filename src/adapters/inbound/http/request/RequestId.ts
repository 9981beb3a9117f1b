import { keyPrefix } from "../../../../domain/ApiKey.ts"

export const requestIdPattern = /^[A-Za-z0-9._-]{1,128}$/

/**
 * Returns the caller's `X-Request-Id` if it is valid, otherwise a new id. An id that contains an API key by mistake is
 * not valid, because ids are written to the log.
 */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()
