import type { AddressInfo } from "node:net"
import { parsePublicUrl, publicUrlRule } from "../../adapters/inbound/http/Address.ts"
import {
  type ConnectionUrl,
  databaseUrlRule,
  isPercentEncoded,
  parseConnectionUrl
} from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"

// The rules of values that are set by environment variables or by options of `createPromptApi`, and the forms of URLs in
// logs.

/**
 * Returns undefined for a valid value, and otherwise the problem, which begins with "must". An error message is the
 * name of the variable or option, a space and the problem. It never contains the value, which may be a secret.
 */
export type Rule = (value: unknown) => string | undefined

export const textRule =
  (problem: string, isValid: (text: string) => boolean): Rule =>
  (value) =>
    typeof value === "string" && isValid(value) ? undefined : problem

export const numberRule =
  (problem: string, isValid: (number: number) => boolean): Rule =>
  (value) =>
    typeof value === "number" && isValid(value) ? undefined : problem

/** The URL of a PostgreSQL server. */
export const postgresUrl: Rule = (value) => {
  const url = typeof value === "string" ? parseConnectionUrl(value) : databaseUrlRule
  return typeof url === "string" ? url : undefined
}

/** The URL of a Redis server. The path of the URL can be the number of a database. */
export const redisUrl = textRule("must be a URL like redis://host:6379", (text) => {
  const url = URL.parse(text)
  if (url === null || !["redis:", "rediss:"].includes(url.protocol)) return false
  const { hostname, username, password, pathname } = url
  return (
    hostname !== "" &&
    /^\/?\d*$/.test(pathname) &&
    [hostname, username, password].every((part) => isPercentEncoded(part))
  )
})

/** A number of requests per minute. */
export const rateLimit = numberRule(
  "must be an integer of at least 1",
  (limit) => Number.isInteger(limit) && limit >= 1
)

export const publicUrl = textRule(publicUrlRule, (url) => parsePublicUrl(url) !== undefined)

const formatHost = (host: string): string => (host.includes(":") ? `[${host}]` : encodeURIComponent(host))

/** Formats a valid URL of PostgreSQL for logs, without password and parameters. */
export const describeDatabaseUrl = (text: string): string => {
  const { host, port, database, user } = parseConnectionUrl(text) as ConnectionUrl
  const credentials = user === undefined ? "" : `${encodeURIComponent(user)}@`
  const path = database === undefined ? "" : `/${encodeURIComponent(database)}`
  return `postgres://${credentials}${formatHost(host)}:${port}${path}`
}

/** Formats the URL of a Redis server for logs, without user, password and parameters. */
export const describeRedisUrl = (text: string): string => {
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

export const formatUrl = ({ address, port }: AddressInfo): string => `http://${formatHost(address)}:${port}`
