import type { IncomingMessage } from "node:http"

/**
 * Joins several `Authorization` headers by the rule of RFC 9110, so that they do not count as a single `Bearer
 * <key>`. Node keeps only the first header.
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

/** Returns true if a request has exactly one `Host` (optional in HTTP/1.0) and is framed by length or `chunked` only. */
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
 * well-formed if it is exactly one `Bearer <token>`: the scheme in any case, one or more spaces, and a token of
 * visible ASCII characters without a comma.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearerPattern.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}
