import { parsePublicUrl, publicUrlRule } from "../../adapters/inbound/http/request/PublicUrl.ts"
import { databaseUrlRule } from "../../adapters/outbound/postgres/connection/ConnectionUrl.ts"
import { findDatabaseUrlProblem, isRedisUrl } from "./ServerUrl.ts"

// The rules of values that environment variables and the options of `createPromptApi` share.

/** A rule of a value. An error message is the name of the variable or option, a space and the problem. */
export interface Rule<A> {
  /** Describes the valid values. Begins with "must". */
  readonly text: string
  /** Returns how a value breaks the rule, beginning with "must", or undefined for a valid value. */
  readonly findProblem: (value: A) => string | undefined
}

/** Makes a rule whose text describes every problem. */
export const makeRule = <A>(text: string, isValid: (value: A) => boolean): Rule<A> => ({
  text,
  findProblem: (value) => (isValid(value) ? undefined : text)
})

/** The URL of one or several PostgreSQL servers. */
export const postgresUrl: Rule<string> = { text: databaseUrlRule, findProblem: findDatabaseUrlProblem }

/** The URL of a Redis server. Its path may select a database by number. */
export const redisUrl: Rule<string> = makeRule("must be a URL like redis://host:6379", isRedisUrl)

/** A number of requests per minute. */
export const rateLimit: Rule<number> = makeRule(
  "must be an integer of at least 1",
  (limit) => Number.isInteger(limit) && limit >= 1
)

/** The URL at which callers reach the API. */
export const publicUrl: Rule<string> = makeRule(publicUrlRule, (url) => parsePublicUrl(url) !== undefined)
