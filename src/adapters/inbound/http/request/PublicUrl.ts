import * as Context from "effect/Context"
import type { HttpRequest } from "../HttpMessage.ts"

/**
 * The URL at which callers reach the service, as `parsePublicUrl` returns it. If it is `undefined`, the URL is
 * derived from the host of each request.
 */
export const PublicUrl = Context.Reference<string | undefined>("prompt-retrieval/PublicUrl", {
  defaultValue: () => undefined
})

/** The rule of a public URL, for error messages. */
export const publicUrlRule =
  "must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"

/** Parses a public URL. Returns its normal form without a trailing slash, or `undefined` if the URL breaks the rule. */
export const parsePublicUrl = (text: string): string | undefined => {
  if (!/^https?:\/\/[^?#]+$/i.test(text) || !URL.canParse(text)) return undefined
  const { origin, pathname, username, password } = new URL(text)
  // A path with `//` at its start would be taken for another host.
  const isValid = username === "" && password === "" && !pathname.includes("//")
  return isValid ? origin + pathname.replace(/\/$/, "") : undefined
}

/** Returns the path of a public URL without a trailing slash: the base path of all routes for callers. */
export const toBasePath = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/$/, "")

/** A host name, an IPv4 address or an IPv6 address in brackets, and a port. */
const hostPattern = /^(?:[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])(?::[1-9]\d{0,4})?$/i

/** The scheme and the authority of an absolute-form target. */
export const absoluteForm = /^(https?):\/\/([^/?#]*)/i

/**
 * Returns the origin that a request was sent to, by its `Host` or otherwise by its absolute-form target, such as
 * `http://127.0.0.1:3000`; or `undefined` if it names no valid host. The scheme is `http` unless the target names
 * another. Any client may send any host, so the result is only for the response to the same request.
 */
export const findOrigin = ({ target, headers }: HttpRequest): string | undefined => {
  const [, scheme = "http", authority] = absoluteForm.exec(target) ?? []
  const host = headers.host ?? authority
  if (host === undefined || !hostPattern.test(host)) return undefined
  const url = `${scheme}://${host}`
  return URL.canParse(url) ? new URL(url).origin : undefined
}
