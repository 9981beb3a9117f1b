const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if a request with this `Origin` may be served. The `Origin` of this machine and of the service's own
 * pages is allowed. A request without `Origin` is allowed, because browsers send `Origin` with every POST. `Host` is not
 * compared with `Origin`: an attacker can point the host name of a web page to this machine, and then both headers have
 * that name.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}
