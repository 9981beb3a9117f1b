/** Hosts of this machine. */
const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if a request with this `Origin` may be served: no `Origin` at all, which only non-browser clients
 * send, the origin of a page of this machine, or the service's own. The `Host` of the request says nothing, because
 * a web page may have pointed its name to this machine.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}
