import { parsePublicUrl, publicUrlRule } from "../../adapters/inbound/http/request/PublicUrl.ts"
import { databaseUrlRule } from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"
import { findDatabaseUrlProblem, isRedisUrl } from "./ServerUrl.ts"

// The rules of values that are set by environment variables or by options of `createPromptApi`.

/** A rule for a value. An error message is the name of the variable or option, a space and the problem. */
export interface Rule<A> {
  /** Describes the valid values. Begins with "must". */
  readonly text: string
  /** Returns undefined for a valid value. Otherwise returns the rule that the value breaks, beginning with "must". */
  readonly findProblem: (value: A) => string | undefined
}

/** Makes a rule whose text describes every problem. */
export const makeRule = <A>(text: string, isValid: (value: A) => boolean): Rule<A> => ({
  text,
  findProblem: (value) => (isValid(value) ? undefined : text)
})

/** The URL of a PostgreSQL server. */
export const postgresUrl: Rule<string> = { text: databaseUrlRule, findProblem: findDatabaseUrlProblem }

/** The URL of a Redis server. The path of the URL can be the number of a database. */
export const redisUrl: Rule<string> = makeRule("must be a URL like redis://host:6379", isRedisUrl)

/** A number of requests per minute. */
export const rateLimit: Rule<number> = makeRule(
  "must be an integer of at least 1",
  (limit) => Number.isInteger(limit) && limit >= 1
)

export const publicUrl: Rule<string> = makeRule(publicUrlRule, (url) => parsePublicUrl(url) !== undefined)
