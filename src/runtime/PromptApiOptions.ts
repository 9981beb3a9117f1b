import * as Redacted from "effect/Redacted"
import type { HostKeyStore } from "../adapters/outbound/host/HostKeyStore.ts"
import type { HostPromptRepo } from "../adapters/outbound/host/HostPromptRepo.ts"
import { defaultRateLimits, type RateLimits } from "../application/Admission.ts"
import { defaultOutageMaxAge } from "../application/Outage.ts"
import { parsePublicUrl } from "../adapters/inbound/http/request/PublicUrl.ts"
import { makeRule, postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./ConfigRules.ts"
import type { HostLogger } from "./telemetry/HostLogger.ts"

/** The options of `createPromptApi` that do not select stores. */
interface CommonOptions {
  /** The URL of a Redis server, which shares the rate limits of keys between processes. Default: none. */
  readonly redisUrl?: string | undefined
  /** Requests per minute. Default: 100 per key and 500 per process. */
  readonly rateLimits?: Partial<RateLimits> | undefined
  /**
   * How long responses are served without the database or the stores after the last contact with them, in
   * milliseconds. 0 turns this off. Default: 300,000.
   */
  readonly outageMaxAge?: number | undefined
  /** Receives log lines. `console` is a valid logger. Default: warnings and errors go to stderr as JSON lines. */
  readonly logger?: HostLogger | undefined
  /** Collects the metrics that `metrics` of the API returns. Default: false. */
  readonly metrics?: boolean | undefined
  /** The path below which the API serves its paths, such as `/prompts`. Default: none. */
  readonly basePath?: string | undefined
  /**
   * The URL at which callers reach the API, such as `https://example.com/prompts`, for the server in `/openapi.json`
   * and for redirects. Default: the host of each request, with `basePath`.
   */
  readonly publicUrl?: string | undefined
}

/** Options for a PostgreSQL database. A store of the host replaces the one of the database. */
interface DatabaseStoreOptions {
  /** The URL of a PostgreSQL server. Required, unless both stores are given. */
  readonly databaseUrl: string
  /** The URL of a connection to the same database that bypasses poolers, for change notifications. Default: `databaseUrl`. */
  readonly databaseFeedUrl?: string | undefined
  /** The prompts of the host. Default: those of the database. */
  readonly promptRepo?: HostPromptRepo | undefined
  /** The API keys of the host. Default: those of the database. */
  readonly keyStore?: HostKeyStore | undefined
}

/** Options for stores of the host, without a database. */
interface HostStoreOptions {
  readonly databaseUrl?: undefined
  readonly databaseFeedUrl?: undefined
  readonly promptRepo: HostPromptRepo
  readonly keyStore: HostKeyStore
}

/** The options of `createPromptApi`. */
export type PromptApiOptions = CommonOptions & (DatabaseStoreOptions | HostStoreOptions)

/** A database, and the stores of the host that replace its own. */
export interface DatabaseStores {
  readonly databaseUrl: Redacted.Redacted
  /** Where the change feed listens; undefined for `databaseUrl`. */
  readonly databaseFeedUrl: Redacted.Redacted | undefined
  readonly promptRepo: HostPromptRepo | undefined
  readonly keyStore: HostKeyStore | undefined
}

/** The stores of a host without a database. */
export interface HostStores {
  readonly databaseUrl: undefined
  readonly promptRepo: HostPromptRepo
  readonly keyStore: HostKeyStore
}

/** Valid options with their defaults. */
export interface PromptApiSettings {
  readonly stores: DatabaseStores | HostStores
  readonly redisUrl: Redacted.Redacted | undefined
  readonly rateLimits: RateLimits
  readonly outageMaxAgeMs: number
  readonly logger: HostLogger | undefined
  readonly metrics: boolean
  readonly basePath: string
  /** In the form of `parsePublicUrl`. */
  readonly publicUrl: string | undefined
}

type Fields = Readonly<Record<string, unknown>>

const isFields = (value: unknown): value is Fields =>
  (typeof value === "object" || typeof value === "function") && value !== null

const isOneOf = (types: ReadonlyArray<string>) => (value: unknown) => types.includes(typeof value)

/** The rule of an object whose functions are these. */
const makeFunctionsRule = (text: string, required: ReadonlyArray<string>, optional: ReadonlyArray<string>) =>
  makeRule<unknown>(
    text,
    (value) =>
      isFields(value) &&
      required.every((name) => typeof value[name] === "function") &&
      optional.every((name) => isOneOf(["function", "undefined"])(value[name]))
  )

/** Makes a rule for any value from a rule for one type. Values of other types break the rule. */
const ofType = <A>(type: "string" | "number", { text, findProblem }: Rule<A>): Rule<unknown> => ({
  text,
  findProblem: (value) => (typeof value === type ? findProblem(value as A) : text)
})

const objectRule = makeRule<unknown>("must be an object", (value) => isFields(value) && !Array.isArray(value))

const optionRules: { readonly [Name in keyof Required<PromptApiOptions>]: Rule<unknown> } = {
  databaseUrl: ofType("string", postgresUrl),
  databaseFeedUrl: ofType("string", postgresUrl),
  promptRepo: makeFunctionsRule(
    "must have the functions list, get, getSource, listVersions and getVersion",
    ["list", "get", "getSource", "listVersions", "getVersion"],
    ["watch"]
  ),
  keyStore: makeFunctionsRule("must have the function find", ["find"], ["markUsed", "watch"]),
  redisUrl: ofType("string", redisUrl),
  rateLimits: objectRule,
  outageMaxAge: ofType(
    "number",
    makeRule(
      "must be a number of milliseconds of at least 0",
      (age: number) => Number.isFinite(age) && age >= 0
    )
  ),
  logger: makeFunctionsRule("must be an object like console", [], ["debug", "info", "warn", "error"]),
  metrics: makeRule<unknown>("must be true or false", isOneOf(["boolean"])),
  basePath: ofType(
    "string",
    makeRule("must be a path like /prompts, without a slash at its end", (path: string) =>
      /^(\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+$/.test(path)
    )
  ),
  publicUrl: ofType("string", publicUrl)
}

const rateLimitRules: { readonly [Name in keyof RateLimits]: Rule<unknown> } = {
  perKey: ofType("number", rateLimit),
  perProcess: ofType("number", rateLimit)
}

/** Throws for a name without a rule, and for a value that breaks its rule. Undefined values have the default. */
const check = (fields: Fields, rules: Readonly<Record<string, Rule<unknown>>>, prefix = ""): void => {
  for (const [name, value] of Object.entries(fields)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined
    if (rule === undefined) {
      throw new TypeError(`${prefix}${name} is unknown; the options are ${Object.keys(rules).join(", ")}`)
    }
    const problem = value === undefined ? undefined : rule.findProblem(value)
    if (problem !== undefined) throw new TypeError(`${prefix}${name} ${problem}`)
  }
}

const toRedacted = (url: string | undefined) => (url === undefined ? undefined : Redacted.make(url))

const readStores = ({
  databaseUrl,
  databaseFeedUrl,
  promptRepo,
  keyStore
}: PromptApiOptions): DatabaseStores | HostStores => {
  if (databaseUrl === undefined && databaseFeedUrl !== undefined)
    throw new TypeError("databaseFeedUrl needs databaseUrl")
  if (promptRepo !== undefined && keyStore !== undefined) {
    if (databaseUrl === undefined) return { databaseUrl, promptRepo, keyStore }
    throw new TypeError("databaseUrl must be absent if promptRepo and keyStore are given")
  }
  if (databaseUrl !== undefined)
    return {
      databaseUrl: Redacted.make(databaseUrl),
      databaseFeedUrl: toRedacted(databaseFeedUrl),
      promptRepo,
      keyStore
    }
  throw new TypeError(`databaseUrl is missing; it ${postgresUrl.text}`)
}

/**
 * Validates options by the rules of the environment variables. Throws a `TypeError` that names the first invalid or
 * unknown option and its rule, never its value, which may be a secret.
 */
export const parseOptions = (options: PromptApiOptions): PromptApiSettings => {
  const fields: unknown = options ?? {}
  if (objectRule.findProblem(fields) !== undefined) throw new TypeError(`options ${objectRule.text}`)
  check(fields as Fields, optionRules)
  const parsed = fields as PromptApiOptions
  const { redisUrl, rateLimits = {}, logger, metrics = false, basePath = "", publicUrl } = parsed
  const { outageMaxAge = defaultOutageMaxAge } = parsed
  check(rateLimits, rateLimitRules, "rateLimits.")
  return {
    stores: readStores(parsed),
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
