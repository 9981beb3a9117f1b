/** The decoded parameters of a query, by name. A parameter that is given several times has all its values, in order. */
export type QueryParameters = Readonly<Record<string, string | ReadonlyArray<string>>>

/** Parses a query, without its `?`, by the form decoding of the WHATWG URL standard. */
export const parseQuery = (query: string): QueryParameters => {
  const parameters: Record<string, string | Array<string>> = Object.create(null)
  // URLSearchParams drops one leading `?`, which would otherwise be part of the first name.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const previous = parameters[name]
    if (previous === undefined) parameters[name] = value
    else if (typeof previous === "string") parameters[name] = [previous, value]
    else previous.push(value)
  }
  return parameters
}
