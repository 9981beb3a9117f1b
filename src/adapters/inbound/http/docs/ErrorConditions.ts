import { keyPrefix } from "../../../../domain/ApiKey.ts"
import { sizes } from "../../../../domain/Sizes.ts"
import type { ErrorTag } from "../../contract/Errors.ts"

/** The condition that each error reports, as a clause. */
export const errorConditions: Readonly<Record<ErrorTag, string>> = {
  BadRequest: "the request is not valid HTTP",
  MalformedHeader: "a request header is malformed",
  InvalidParameter: "a query parameter is invalid",
  MalformedAuthorization: "the `Authorization` header is missing or is not `Bearer <key>`",
  InvalidKeyFormat: `the key does not start with \`${keyPrefix}\``,
  InvalidKey: "the key does not exist",
  KeyRevoked: "the key has been revoked or has expired",
  OwnerMustReset: "the owner of the key must reset the password",
  NoOrganization: "the key belongs to no workspace",
  Disputed: "a payment of the workspace is disputed",
  PastDue: "the subscription of the workspace is past due or over its limit",
  ApiNotAllowed: "the workspace is on the Free tier",
  RouteNotFound: "no endpoint has this path",
  PromptNotFound: "the workspace has no prompt with this id",
  VersionNotFound: "no prompt of the workspace has this id and version",
  MethodNotAllowed: "the method is neither `GET` nor `HEAD`",
  RequestTimeout: "the request did not arrive completely in time",
  ExpectationFailed: "the `Expect` header is not `100-continue`",
  RateLimited: "the rate limit of the key or of the process is exceeded: wait for `Retry-After`",
  HeadersTooLarge: "the request headers are too large",
  ResolvedTooLarge: `the resolved content would exceed ${sizes.contentBytes / 1024 / 1024} MiB`,
  InternalError: "an unexpected failure occurred",
  Unavailable: "the service is starting, stopping or overloaded, or cannot read its database in time"
}

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns a sentence that says when a response reports one of these errors. */
export const describeConditions = (tags: ReadonlyArray<ErrorTag>): string => {
  const conditions = tags.map((tag) => errorConditions[tag])
  return `${capitalize(new Intl.ListFormat("en", { type: "disjunction" }).format(conditions))}.`
}
