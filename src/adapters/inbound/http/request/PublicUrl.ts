import * as Context from "effect/Context"
import * as Layer from "effect/Layer"

/**
 * The URL at which callers reach the service, in the form that `parsePublicUrl` returns. If the URL is `undefined`,
 * responses contain paths instead of URLs.
 */
export class PublicUrl extends Context.Service<PublicUrl, string | undefined>()(
  "prompt-retrieval/PublicUrl"
) {}

/**
 * The path below which a host mounts this API, such as `/prompts`, without a trailing slash. If the host mounts the API
 * at the root, the path is empty.
 */
export class BasePath extends Context.Service<BasePath, string>()("prompt-retrieval/BasePath") {}

/** The address at which callers reach the API. */
export interface AddressSettings {
  /** The URL at which callers reach the API. Without this URL, responses contain paths instead of URLs. */
  readonly publicUrl?: string | undefined
  /** The path below which a host mounts the API. The default is the root. */
  readonly basePath?: string
}

export const addressLayer = ({
  publicUrl,
  basePath = ""
}: AddressSettings): Layer.Layer<PublicUrl | BasePath> =>
  Layer.merge(Layer.succeed(PublicUrl, publicUrl), Layer.succeed(BasePath, basePath))

/** The rule for public URLs, as error messages state it. */
export const publicUrlRule =
  "must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"

/** Parses a public URL. Returns its normal form without a trailing slash, or `undefined` if the URL breaks the rule. */
export const parsePublicUrl = (text: string): string | undefined => {
  if (!/^https?:\/\/[^?#]+$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname, username, password } = new URL(text)
  // Browsers read a redirect to a path that starts with `//` as a redirect to another host.
  const isValid = username === "" && password === "" && !pathname.includes("//")
  return isValid ? origin + pathname.replace(/\/$/, "") : undefined
}

/**
 * Returns the path of a public URL without a trailing slash. In the URLs that callers use, every route comes after this
 * path.
 */
export const toBasePath = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, "")
