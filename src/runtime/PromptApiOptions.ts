import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { parsePublicUrl } from "../adapters/inbound/http/Address.ts"
import { defaultRateLimits, type RateLimits } from "../application/Admission.ts"
import { defaultOutageMaxAge } from "../application/cache/Outage.ts"
import { makeRule, postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./config/ConfigRules.ts"
import type { HostLogger } from "./telemetry/HostLogger.ts"

/** The options of `createPromptApi`. */
export interface PromptApiOptions {
  /** The URL of a PostgreSQL server. */
  readonly databaseUrl: string
  /** The URL of the same database without a connection pooler, for change notifications. Default: `databaseUrl`. */
  readonly databaseFeedUrl?: string | undefined
  /** The URL of a Redis server, through which processes share the rate limits of keys. Default: none. */
  readonly redisUrl?: string | undefined
  /** The rate limits, in requests per minute. Default: 100 per key and 500 per process. */
  readonly rateLimits?: Partial<RateLimits> | undefined
  /**
   * How long `handler` serves known responses while the database is unreachable, in milliseconds since the last
   * contact. Known responses were current at that contact. 0 disables known responses. Default: 300,000.
   */
  readonly outageMaxAge?: number | undefined
  /** Receives log lines. `console` is a valid logger. Default: warnings and errors go to stderr as JSON lines. */
  readonly logger?: HostLogger | undefined
  /** True to collect the metrics that `PromptApi.metrics` returns. Default: false. */
  readonly metrics?: boolean | undefined
  /** The prefix of all paths of the API, such as `/prompts`. Default: none. */
  readonly basePath?: string | undefined
  /**
   * The URL at which callers reach the API, such as `https://example.com/prompts`. The API uses this URL as the server
   * in `/openapi.json` and for redirects. Default: none, so the document and the redirects contain only paths.
   */
  readonly publicUrl?: string | undefined
}

const objectRule = makeRule("must be an object", Predicate.isObject)

/** A rule for each option. */
type Rules<Options> = { readonly [Name in keyof Required<Options>]: Rule }

const optionRules: Rules<PromptApiOptions> = {
  databaseUrl: postgresUrl,
  databaseFeedUrl: postgresUrl,
  redisUrl,
  rateLimits: objectRule,
  outageMaxAge: makeRule(
    "must be a number of milliseconds of at least 0",
    Predicate.isNumber,
    (age) => Number.isFinite(age) && age >= 0
  ),
  logger: makeRule("must be an object like console", Predicate.isObjectKeyword, (logger) =>
    ["debug", "info", "warn", "error"]
      .map((level) => Reflect.get(logger, level))
      .every((log) => log === undefined || typeof log === "function")
  ),
  metrics: makeRule("must be true or false", Predicate.isBoolean),
  basePath: makeRule("must be a path like /prompts, without a slash at its end", Predicate.isString, (path) =>
    /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/.test(path)
  ),
  publicUrl
}

/**
 * Throws a `TypeError` if an option has no rule, or if the value of an option breaks the option's rule. An undefined
 * value selects the default.
 */
const check = <Options extends object>(options: Options, rules: Rules<Options>, prefix = ""): void => {
  for (const [name, value] of Object.entries(options)) {
    const rule = Object.hasOwn(rules, name) ? rules[name as keyof Options] : undefined
    if (rule === undefined)
      throw new TypeError(`${prefix}${name} is unknown; the options are ${Object.keys(rules).join(", ")}`)
    const problem = value === undefined ? undefined : rule(value)
    if (problem !== undefined) throw new TypeError(`${prefix}${name} ${problem}`)
  }
}

const toRedacted = (url: string | undefined) => (url === undefined ? undefined : Redacted.make(url))

/**
 * Validates options and applies the defaults. Throws a `TypeError` for the first option that is invalid or unknown. The
 * message names the option, but does not contain its value, because the value can be a secret.
 */
export const parseOptions = (options: PromptApiOptions) => {
  const given: PromptApiOptions = options ?? {}
  const problem = objectRule(given)
  if (problem !== undefined) throw new TypeError(`options ${problem}`)
  check(given, optionRules)
  const { databaseUrl, databaseFeedUrl, redisUrl, rateLimits = {}, publicUrl } = given
  const { outageMaxAge = defaultOutageMaxAge, logger, metrics = false, basePath = "" } = given
  if (databaseUrl === undefined) throw new TypeError(`databaseUrl is missing; it ${postgresUrl(databaseUrl)}`)
  check(rateLimits, { perKey: rateLimit, perProcess: rateLimit }, "rateLimits.")
  return {
    databaseUrl: Redacted.make(databaseUrl),
    databaseFeedUrl: toRedacted(databaseFeedUrl),
    redisUrl: toRedacted(redisUrl),
    rateLimits: {
      perKey: rateLimits.perKey ?? defaultRateLimits.perKey,
      perProcess: rateLimits.perProcess ?? defaultRateLimits.perProcess
    },
    outageMaxAgeMs: outageMaxAge,
    logger,
    metrics,
    basePath,
    publicUrl: publicUrl === undefined ? undefined : parsePublicUrl(publicUrl)
  }
}

/** Validated options, with the defaults applied. */
export type PromptApiSettings = ReturnType<typeof parseOptions>
