import * as Result from "effect/Result"

/** The parts of a PostgreSQL URL that select a server, a database and a user. */
export interface ConnectionUrl {
  /** A host, or the directory of a Unix socket. */
  readonly host: string
  readonly port: number
  readonly database: string | undefined
  readonly user: string | undefined
}

/** The rule for database URLs, as the end of a sentence that begins with the name of a setting. */
export const databaseUrlRule = "must be a URL like postgres://user:password@host:5432/database"

const percentEncodingRule = `${databaseUrlRule}; percent-encode special characters of the password, such as # as %23`

/** Matches a URL that has, before an `@`, a character that must be percent-encoded in a user or a password. */
const specialCharacterBeforeHost = /^postgres(?:ql)?:\/\/[^@]*[/?#%][^@]*@/i

const oneHostRule =
  "must have exactly one host: use an address that follows the primary, such as HAProxy, a pooler, a DNS name, or the endpoint of Patroni or of a cloud"

/** Matches a URL with a comma in the part after the credentials and before the path. */
const severalHosts = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?[^/?#@]*,[^/?#@]*(?:[/?#]|$)/i

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

/** Returns true if every percent sign in a text begins a percent-encoded UTF-8 character. */
export const isPercentEncoded = (text: string): boolean =>
  Result.isSuccess(Result.try(() => decodeURIComponent(text)))

const parsePort = (text: string): number | undefined => {
  const port = Number(text)
  return /^\d+$/.test(text) && port >= 1 && port <= 65535 ? port : undefined
}

/**
 * Parses the URL of a PostgreSQL server. If the text breaks a rule, returns the rule, as the end of a sentence that
 * begins with the name of a setting. The rule does not contain the URL, which can contain a password.
 */
export const parseConnectionUrl = (text: string): ConnectionUrl | string => {
  if (severalHosts.test(text.trim())) return oneHostRule
  // The URL parser would ignore the part after `#`. A `#` in the password would therefore change the host.
  if (text.includes("#")) return percentEncodingRule
  const urlRule = specialCharacterBeforeHost.test(text) ? percentEncodingRule : databaseUrlRule
  const url = URL.parse(text)
  if (url === null || !["postgres:", "postgresql:"].includes(url.protocol)) return urlRule
  const { hostname, username, password, pathname, searchParams } = url
  if (![hostname, username, password, pathname].every(isPercentEncoded)) return urlRule

  // As in libpq, a query parameter overrides the matching part of the URL. If a parameter is repeated, the last value
  // counts.
  const choose = (name: string, part: string): string | undefined =>
    searchParams.getAll(name).at(-1) || decodeURIComponent(part) || undefined
  const host = choose("host", hostname.replace(/^\[(.*)\]$/, "$1"))
  if (host?.includes(",")) return oneHostRule
  const port = parsePort(choose("port", url.port) ?? "5432")
  if (host === undefined || port === undefined) return urlRule
  if (!searchParams.getAll("sslmode").every((mode) => sslModes.includes(mode)))
    return `must have one of these as its sslmode: ${sslModes.join(", ")}`
  return { host, port, database: choose("dbname", pathname.slice(1)), user: choose("user", username) }
}
