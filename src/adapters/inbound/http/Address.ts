import * as Context from "effect/Context"

/** The address at which callers reach the API. */
export interface AddressSettings {
  /** The URL of the API for callers, from `parsePublicUrl`. Without this URL, responses contain only paths. */
  readonly publicUrl?: string | undefined
  /** The path below which a host mounts the API, such as `/prompts`. The default is the root. */
  readonly basePath?: string
}

export class Address extends Context.Service<Address, AddressSettings>()(
  "prompt-retrieval/adapters/inbound/http/Address"
) {}

/** The rule for public URLs, as error messages state it. */
export const publicUrlRule =
  "must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"

/** Parses a public URL. Returns the normal form without a trailing slash, or `undefined` if the URL breaks the rule. */
export const parsePublicUrl = (text: string): string | undefined => {
  if (!/^https?:\/\/[^?#]+$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname, username, password } = new URL(text)
  // Browsers read a redirect to a path that starts with `//` as a redirect to another host.
  const isValid = username === "" && password === "" && !pathname.includes("//")
  return isValid ? origin + pathname.replace(/\/$/, "") : undefined
}

/** Returns the path of a public URL without a trailing slash. In public URLs, this path precedes every route. */
export const toPublicPath = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, "")
