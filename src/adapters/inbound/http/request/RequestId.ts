import { keyPrefix } from "../../../../domain/ApiKey.ts"

/** What a request id looks like. */
export const requestIdPattern = /^[A-Za-z0-9._-]{1,128}$/

/**
 * The request's id: the caller's own if it is 1 to 128 of `[A-Za-z0-9._-]`, else a new one (DESIGN.md section 5). One
 * that holds a key by mistake is no id: it would be logged.
 */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()
