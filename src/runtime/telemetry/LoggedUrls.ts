import type { AddressInfo } from "node:net"
import {
  type ConnectionUrl,
  parseConnectionUrl
} from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"

const formatHost = (host: string): string => (host.includes(":") ? `[${host}]` : encodeURIComponent(host))

/** Formats the valid URL of a PostgreSQL server for logs, without password and parameters. */
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
