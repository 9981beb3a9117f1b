/** A request target, reduced to what the service goes by. */
export interface MatchedRoute {
  /** The route's pattern, such as `/api/v1/prompts/:id`. */
  readonly route: string
  /** What the path has where the pattern is open, by the pattern's names. */
  readonly params: Readonly<Record<string, string>>
  /** What follows the `?`, undecoded. */
  readonly query: string
}

const absoluteForm = /^https?:\/\/[^/?#]*/i

/** Bytes that no path of this service has: escapes, parameters and fragments. */
const disallowedPathBytes = /[%;#]/

/** A segment of a pattern: what it has to be, or the name of what it leaves open. */
type Segment = { readonly is: string } | { readonly name: string }

const parseSegment = (text: string): Segment =>
  text.startsWith(":") ? { name: text.slice(1) } : { is: text }

/**
 * Reads raw request targets against the patterns of all routes (DESIGN.md section 4.2): an absolute-form target is
 * reduced to its path; paths are compared byte by byte, undecoded and case-sensitive, so a trailing slash, `//`, `%`,
 * `;` and `#` are unknown. Gives a function from a raw target to a Target, or to `undefined` for an unknown path.
 */
export const makeRouteMatcher = (
  patterns: ReadonlyArray<string>
): ((raw: string) => MatchedRoute | undefined) => {
  const routes = patterns.map((route) => ({ route, pattern: route.split("/").map(parseSegment) }))
  const match = (pattern: ReadonlyArray<Segment>, segments: ReadonlyArray<string>) => {
    if (pattern.length !== segments.length) return undefined
    const params: Record<string, string> = {}
    for (const [i, expected] of pattern.entries()) {
      const segment = segments[i]!
      if ("is" in expected ? segment !== expected.is : segment === "") return undefined
      if ("name" in expected) params[expected.name] = segment
    }
    return params
  }
  return (raw) => {
    const target = raw.startsWith("/") ? raw : raw.replace(absoluteForm, "")
    const mark = target.indexOf("?")
    const path = mark < 0 ? target : target.slice(0, mark)
    if (disallowedPathBytes.test(path)) return undefined
    const segments = path.split("/")
    for (const { route, pattern } of routes) {
      const params = match(pattern, segments)
      if (params !== undefined) return { route, params, query: mark < 0 ? "" : target.slice(mark + 1) }
    }
    return undefined
  }
}
