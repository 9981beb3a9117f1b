/** The content codings in which static pages are available. The preferred coding comes first. */
export const contentCodings = ["br", "gzip"] as const

export type ContentCoding = (typeof contentCodings)[number]

/** Matches a weight from `q=0` to `q=1` with at most three decimals. */
const weightPattern = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

/**
 * Returns the weight of each coding in an `Accept-Encoding` header. The names of the codings are in lower case.
 * Malformed elements are ignored.
 */
const parseWeights = (header: string): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>()
  for (const element of header.toLowerCase().split(",")) {
    const [coding = "", weight = "q=1", ...others] = element.split(";").map((part) => part.trim())
    const value = weightPattern.exec(weight)?.[1]
    if (coding !== "" && value !== undefined && others.length === 0)
      weights.set(coding === "x-gzip" ? "gzip" : coding, Number(value))
  }
  return weights
}

/**
 * Chooses the content coding of a page by the `Accept-Encoding` of the request (RFC 9110, 12.5.3). The coding with the
 * greatest weight is chosen. If several codings have this weight, the first of `contentCodings` is chosen. Returns
 * `undefined` if the header is missing, prefers `identity`, or accepts none of the codings: the page is then sent
 * without a coding.
 */
export const chooseContentCoding = (acceptEncoding: string | undefined): ContentCoding | undefined => {
  if (acceptEncoding === undefined) return undefined
  const weights = parseWeights(acceptEncoding)
  const weigh = (coding: string) => weights.get(coding) ?? weights.get("*") ?? 0
  const greatest = Math.max(...contentCodings.map(weigh))
  return greatest > 0 && greatest >= weigh("identity")
    ? contentCodings.find((coding) => weigh(coding) === greatest)
    : undefined
}
