import type { IncomingMessage } from "node:http"
import { keyPrefix } from "../../../../domain/ApiKey.ts"

/**
 * Returns true if a request has exactly one `Host` header, and no transfer coding other than `chunked`. Only an
 * HTTP/1.0 request is also accepted without a `Host` header. The server joins duplicate headers with commas, so a comma
 * in `host` means several headers.
 */
export const hasAcceptableHead = ({ headers, httpVersion }: IncomingMessage): boolean => {
  const { host, "transfer-encoding": framing } = headers
  return (
    (host === undefined ? httpVersion === "1.0" : !host.includes(",")) &&
    (framing === undefined || framing.toLowerCase() === "chunked")
  )
}

const bearerPattern = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the token of an `Authorization` header, or `undefined` if the header is missing or malformed. A header is
 * well-formed if it is exactly one `Bearer <token>`: the scheme in any case, one or more spaces, and a token of visible
 * ASCII characters without a comma.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearerPattern.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}

export const requestIdPattern = /^[A-Za-z0-9._-]{1,128}$/

/**
 * Returns the caller's `X-Request-Id` if it is valid, otherwise a new id. An id that contains the prefix of API keys is
 * not valid: it may be a key, and ids are written to the log.
 */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()
