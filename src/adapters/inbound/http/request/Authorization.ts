const bearer = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the token of an `Authorization` header, or `undefined` if the header is missing or malformed. A header is
 * well-formed if it is exactly one `Bearer <token>`: the scheme in any case, one or more spaces, and a token of
 * visible ASCII characters without a comma.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearer.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}
