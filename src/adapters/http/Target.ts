/** A request target, reduced to what the service goes by. */
export interface Target {
  /** The route's pattern, such as `/api/v1/prompts/:id`. */
  readonly route: string
  /** Path and query, for the router; the query is written anew, so that every reader decodes it alike. */
  readonly url: string
}

const absoluteForm = /^https?:\/\/[^/?#]*/i

/** Bytes that no path of this service has: escapes, parameters and fragments. */
const foreign = /[%;#]/

/** A path segment that a pattern leaves open. */
const parameter = (segment: string): boolean => segment.startsWith(":")

/**
 * Reads raw request targets against the patterns of all routes (DESIGN.md section 4.2): an absolute-form target is
 * reduced to its path; paths are compared byte by byte, undecoded and case-sensitive, so a trailing slash, `//`, `%`,
 * `;` and `#` are unknown. Gives a function from a raw target to a Target, or to `undefined` for an unknown path.
 */
export const targetReader = (patterns: ReadonlyArray<string>): ((raw: string) => Target | undefined) => {
  const routes = patterns.map((route) => ({ route, segments: route.split("/") }))
  return (raw) => {
    const target = raw.startsWith("/") ? raw : raw.replace(absoluteForm, "")
    const mark = target.indexOf("?")
    const path = mark < 0 ? target : target.slice(0, mark)
    if (foreign.test(path)) return undefined
    const segments = path.split("/")
    const found = routes.find(
      (candidate) =>
        candidate.segments.length === segments.length &&
        candidate.segments.every((segment, i) =>
          parameter(segment) ? segments[i] !== "" : segment === segments[i]
        )
    )
    if (found === undefined) return undefined
    return {
      route: found.route,
      url: mark < 0 ? path : `${path}?${new URLSearchParams(target.slice(mark + 1))}`
    }
  }
}
