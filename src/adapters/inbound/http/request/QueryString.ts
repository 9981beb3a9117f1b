/** The decoded parameters by name. A parameter that is given several times has an array of its values. */
export type QueryParameters = Readonly<Record<string, string | ReadonlyArray<string>>>

/** Parses a query without its `?`, by the rules of the WHATWG URL standard for forms. */
export const parseQuery = (query: string): QueryParameters => {
  const parameters: Record<string, string | Array<string>> = Object.create(null)
  // URLSearchParams drops a leading `?`. Without the added `?`, it would drop a `?` of the first name.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const previous = parameters[name]
    if (previous === undefined) parameters[name] = value
    else if (typeof previous === "string") parameters[name] = [previous, value]
    else previous.push(value)
  }
  return parameters
}
