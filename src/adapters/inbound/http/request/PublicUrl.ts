import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/**
 * The URL at which callers reach the service, as `parsePublicUrl` returns it. If it is `undefined`, responses name only
 * paths.
 */
export class PublicUrl extends Context.Service<PublicUrl, string | undefined>()(
  "prompt-retrieval/PublicUrl"
) {}

/**
 * The path below which a host mounts this API, such as `/prompts`, without a trailing slash; empty if the API is
 * mounted at the root.
 */
export class BasePath extends Context.Service<BasePath, string>()("prompt-retrieval/BasePath") {}

/** Where callers find the API. */
export interface AddressSettings {
  /** The URL at which callers reach the API. By default, responses name only paths. */
  readonly publicUrl?: string | undefined
  /** The path below which a host mounts the API. By default, the root. */
  readonly basePath?: string
}

export const addressLayer = ({
  publicUrl,
  basePath = ""
}: AddressSettings): Layer.Layer<PublicUrl | BasePath> =>
  Layer.merge(Layer.succeed(PublicUrl, publicUrl), Layer.succeed(BasePath, basePath))

/** The rule of a public URL, for error messages. */
export const publicUrlRule =
  "must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"

/** Parses a public URL. Returns its normal form without a trailing slash, or `undefined` if the URL breaks the rule. */
export const parsePublicUrl = (text: string): string | undefined => {
  if (!/^https?:\/\/[^?#]+$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname, username, password } = new URL(text)
  // A redirect to a path that starts with `//` would lead to another host.
  const isValid = username === "" && password === "" && !pathname.includes("//")
  return isValid ? origin + pathname.replace(/\/$/, "") : undefined
}

/** Returns the path of a public URL without a trailing slash: the base path of all routes for callers. */
export const toBasePath = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, "")

/** The scheme and the authority of an absolute-form target. */
export const absoluteFormPattern = /^(https?):\/\/([^/?#]*)/i
