import * as Predicate from "effect/Predicate"
import { parsePublicUrl, publicUrlRule } from "../../adapters/inbound/http/Address.ts"
import {
  databaseUrlRule,
  isPercentEncoded,
  parseConnectionUrl
} from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"

// The rules of environment variables and of the options of `createPromptApi`. Effect's `Config` is not used, because
// `Config` reports only the first invalid variable. Schemas would repeat each message for the type and the check.

/**
 * Returns undefined for a valid value. Otherwise, returns the problem, which begins with "must". An error message is the
 * name of the variable or option, a space and the problem. The message never contains the value, which can be a secret.
 */
export type Rule = (value: unknown) => string | undefined

/** Makes a rule. A valid value has the type, and meets the condition if there is one. */
export const makeRule =
  <A>(
    problem: string,
    hasType: (value: unknown) => value is A,
    isValid: (value: A) => boolean = () => true
  ): Rule =>
  (value) =>
    hasType(value) && isValid(value) ? undefined : problem

/** The URL of a PostgreSQL server. */
export const postgresUrl: Rule = (value) => {
  const url = typeof value === "string" ? parseConnectionUrl(value) : databaseUrlRule
  return typeof url === "string" ? url : undefined
}

/** The URL of a Redis server. The path of the URL can be the number of a database. */
export const redisUrl = makeRule("must be a URL like redis://host:6379", Predicate.isString, (text) => {
  const url = URL.parse(text)
  if (url === null || !["redis:", "rediss:"].includes(url.protocol)) return false
  const { hostname, username, password, pathname } = url
  return (
    hostname !== "" &&
    /^\/?\d*$/.test(pathname) &&
    [hostname, username, password].every((part) => isPercentEncoded(part))
  )
})

/** A number of requests per minute. */
export const rateLimit = makeRule(
  "must be an integer of at least 1",
  Predicate.isNumber,
  (limit) => Number.isInteger(limit) && limit >= 1
)

export const publicUrl = makeRule(
  publicUrlRule,
  Predicate.isString,
  (url) => parsePublicUrl(url) !== undefined
)
