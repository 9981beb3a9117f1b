import type { IncomingMessage } from "node:http"
import { keyPrefix } from "../../../../domain/ApiKey.ts"

/**
 * Joins the values of several `Authorization` headers with commas, as RFC 9110 says. The joined value is malformed, so
 * the request is rejected. Node would use only the first header.
 */
export const mergeAuthorizationHeaders = (request: IncomingMessage): void => {
  const { rawHeaders } = request
  let merged: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length !== 13 || name.toLowerCase() !== "authorization") continue
    const value = rawHeaders[i + 1] ?? ""
    merged = merged === undefined ? value : `${merged}, ${value}`
    request.headers.authorization = merged
  }
}

/**
 * Returns true if a request has exactly one `Host` header, and no transfer coding other than `chunked`. A request of
 * HTTP/1.0 may have no `Host` header.
 */
export const hasAcceptableHead = ({ rawHeaders, headers, httpVersion }: IncomingMessage): boolean => {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++
  }
  const framing = headers["transfer-encoding"]
  return (
    (hosts === 1 || (hosts === 0 && httpVersion === "1.0")) &&
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
 * Returns the caller's `X-Request-Id` if it is valid, otherwise a new id. An id that contains an API key by mistake is
 * not valid, because ids are written to the log.
 */
export const chooseRequestId = (header: string | undefined): string =>
  header !== undefined && requestIdPattern.test(header) && !header.includes(keyPrefix)
    ? header
    : crypto.randomUUID()
