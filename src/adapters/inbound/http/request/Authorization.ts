const bearer = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the token of an `Authorization` header, or `undefined` if the header is missing or malformed. Well formed is
 * exactly one `Bearer <token>`: the scheme in any case, one or more spaces, no list, no tab, ASCII only.
 */
export const parseBearerToken = (header: string | undefined): string | undefined => {
  const token = header === undefined ? undefined : bearer.exec(header)?.[1]
  return token?.includes(",") ? undefined : token
}
