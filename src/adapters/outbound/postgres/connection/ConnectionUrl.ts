// The URLs of PostgreSQL servers, as libpq defines them: one URL may name several servers.

export interface ServerAddress {
  /** A host, or the directory of a Unix socket. */
  readonly host: string
  readonly port: number
}

/** The kinds of server that a connection may require, as in libpq. */
const targetSessionAttrs = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const
export type TargetSessionAttrs = (typeof targetSessionAttrs)[number]

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
/**
 * The modes that a URL with several hosts may have. `allow` and `prefer` are missing: with several hosts, the driver
 * gets the selected host as a TLS option, and a driver with TLS options never falls back to a connection without TLS.
 */
const sslModesOfSeveralHosts = ["disable", "require", "verify-ca", "verify-full"]

/** The parts of a URL that select a server, a database and a user. */
export interface ConnectionUrl {
  /** One or more servers, in the order of preference. */
  readonly servers: ReadonlyArray<ServerAddress>
  readonly targetSessionAttrs: TargetSessionAttrs
  readonly sslMode: string
  readonly database: string | undefined
  readonly user: string | undefined
  readonly password: string | undefined
  /** Returns the URL that leads only to the given server. */
  readonly formatServerUrl: (server: ServerAddress) => string
}

/** The rule for database URLs, as the end of a sentence that begins with the name of a setting. */
export const databaseUrlRule = "must be a URL like postgres://user:password@host:5432/database"

const defaultPort = "5432"

/**
 * Splits a URL into three parts: the scheme with the credentials, the hosts with their ports, and the rest of the URL.
 */
const urlPattern = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is

/** Returns true if every percent sign of a text begins an escape sequence of UTF-8. */
export const isPercentEncoded = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/**
 * Returns the value of a parameter in the query string. As in libpq, the last occurrence of the parameter is used. The
 * parameter overrides the other parts of the URL.
 */
const findParameter = (url: URL, name: string): string | undefined =>
  url.searchParams.getAll(name).at(-1) || undefined

const parsePort = (text: string): number | undefined => {
  const port = Number(text)
  return /^\d+$/.test(text) && port >= 1 && port <= 65535 ? port : undefined
}

const listAddresses = (urls: ReadonlyArray<URL>, parameters: URL) => {
  const hosts = urls.map(({ hostname }) => decodeURIComponent(hostname.replace(/^\[(.*)\]$/, "$1")))
  const ports = urls.map(({ port }) => port)
  return {
    hosts: findParameter(parameters, "host")?.split(",") ?? hosts,
    ports:
      findParameter(parameters, "port")?.split(",") ?? (ports.every((port) => port === "") ? [""] : ports)
  }
}

const describeAllowedValues = (name: string, values: ReadonlyArray<string>) =>
  `must have one of these as its ${name}: ${values.join(", ")}`

/** Returns the rule that the parameters of a URL break, or `undefined` if they break none. */
const findParameterProblem = (url: URL, serverCount: number): string | undefined => {
  const attributes = url.searchParams.getAll("target_session_attrs")
  if (!attributes.every((value) => targetSessionAttrs.some((known) => known === value)))
    return describeAllowedValues("target_session_attrs", targetSessionAttrs)
  if (!url.searchParams.getAll("load_balance_hosts").every((value) => value === "disable"))
    return "must have disable as its load_balance_hosts: hosts are tried in order"
  const modes = url.searchParams.getAll("sslmode")
  if (!modes.every((mode) => sslModes.includes(mode))) return describeAllowedValues("sslmode", sslModes)
  return serverCount === 1 || modes.every((mode) => sslModesOfSeveralHosts.includes(mode))
    ? undefined
    : `${describeAllowedValues("sslmode", sslModesOfSeveralHosts)}, because it has several hosts`
}

/**
 * Parses the URL of one or several PostgreSQL servers. If the text breaks a rule, returns this rule as the end of a
 * sentence that begins with the name of a setting, such as "must be a URL like …". The rule does not contain the URL,
 * which may contain a password.
 */
export const parseConnectionUrl = (text: string): ConnectionUrl | string => {
  const [, start = "", authority = "", end = ""] = urlPattern.exec(text.trim()) ?? []
  const urls = authority.split(",").map((address) => URL.parse(start + address + end))
  const [first] = urls
  if (first === null || first === undefined || !urls.every((url) => url !== null)) return databaseUrlRule
  const { username, password, pathname } = first
  if (![username, password, pathname, ...urls.map(({ hostname }) => hostname)].every(isPercentEncoded))
    return databaseUrlRule

  const { hosts, ports } = listAddresses(urls, first)
  if (ports.length !== 1 && ports.length !== hosts.length)
    return "must have one port, or as many ports as it has hosts"
  const servers: Array<ServerAddress> = []
  for (const [index, host] of hosts.entries()) {
    const port = parsePort(ports[ports.length === 1 ? 0 : index] || defaultPort)
    if (host === "" || port === undefined) return databaseUrlRule
    servers.push({ host, port })
  }
  const problem = findParameterProblem(first, servers.length)
  if (problem !== undefined) return problem

  const choose = (name: string, part: string): string | undefined =>
    findParameter(first, name) ?? (decodeURIComponent(part) || undefined)
  return {
    servers,
    targetSessionAttrs: (findParameter(first, "target_session_attrs") ?? "any") as TargetSessionAttrs,
    sslMode: findParameter(first, "sslmode") ?? "disable",
    database: choose("dbname", pathname.slice(1)),
    user: choose("user", username),
    password: choose("password", password),
    formatServerUrl: ({ host, port }) => {
      const url = new URL(first)
      url.searchParams.set("host", host)
      url.searchParams.set("port", String(port))
      return url.href
    }
  }
}
