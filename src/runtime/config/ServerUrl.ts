import type { AddressInfo } from "node:net"
import {
  type ConnectionUrl,
  isPercentEncoded,
  parseConnectionUrl
} from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"

// The rules for the URLs of PostgreSQL and Redis servers, and the form of these URLs in logs.

/**
 * Parses a URL that a driver can use. Returns `undefined` if the text is not a URL, the scheme is not in `schemes` or
 * the percent-encoding is invalid.
 */
const parseServerUrl = (text: string, schemes: ReadonlyArray<string>): URL | undefined => {
  const url = URL.parse(text)
  if (url === null || !schemes.includes(url.protocol)) return undefined
  const { hostname, username, password, pathname } = url
  return [hostname, username, password, pathname].every(isPercentEncoded) ? url : undefined
}

/**
 * Returns the rule that the URL of a PostgreSQL server breaks. The rule begins with "must", to follow a name, and does
 * not contain the URL. Returns undefined for a valid URL.
 */
export const findDatabaseUrlProblem = (text: string): string | undefined => {
  const url = parseConnectionUrl(text)
  return typeof url === "string" ? url : undefined
}

const formatHost = (host: string): string => (host.includes(":") ? `[${host}]` : encodeURIComponent(host))

/**
 * Formats the URL of a PostgreSQL server for logs, with user, host, port and database, but without password and other
 * parameters. The URL must be valid.
 */
export const describeDatabaseUrl = (text: string): string => {
  const { host, port, database, user } = parseConnectionUrl(text) as ConnectionUrl
  const credentials = user === undefined ? "" : `${encodeURIComponent(user)}@`
  const path = database === undefined ? "" : `/${encodeURIComponent(database)}`
  return `postgres://${credentials}${formatHost(host)}:${port}${path}`
}

/** Returns true if the Redis driver accepts the text as the URL of a server. */
export const isRedisUrl = (text: string): boolean => {
  const url = parseServerUrl(text, ["redis:", "rediss:"])
  return url !== undefined && url.hostname !== "" && /^\/?\d*$/.test(url.pathname)
}

/** Formats the URL of a Redis server for logs, without user, password and parameters. */
export const describeRedisUrl = (text: string): string => {
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

export const formatUrl = ({ address, port }: AddressInfo): string =>
  `http://${address.includes(":") ? `[${address}]` : address}:${port}`
