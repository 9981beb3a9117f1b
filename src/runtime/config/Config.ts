import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import { type Variable, type VariableName, variables } from "../../adapters/inbound/cli/input/Environment.ts"
import { parsePublicUrl } from "../../adapters/inbound/http/Address.ts"
import { minMaxConnections } from "../../adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"
import { makeRule, postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./ConfigRules.ts"

/** Environment variables are invalid. The message names each invalid variable and its rule. */
export class InvalidConfig extends Data.TaggedError("InvalidConfig")<{ readonly message: string }> {}

/** The value of a variable; undefined if the variable has no default and is not set. */
type Value<Name extends VariableName, A> = (typeof variables)[Name] extends { readonly defaultValue: string }
  ? A
  : A | undefined

const anyText: Rule = () => undefined

/** Parses decimal digits between optional white space. Returns `undefined` for other texts and inexact numbers. */
const parseInteger = (text: string): number | undefined =>
  /^\s*\d+\s*$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined

/** Makes a rule for a number from `min` to `max`. Without `max`, every finite number of at least `min` is valid. */
const makeRange = (problem: string, min: number, max = Number.MAX_VALUE): Rule =>
  makeRule(problem, Predicate.isNumber, (value) => value >= min && value <= max)

const port = makeRange("must be a port, 0 to 65535", 0, 65535)

const maxConnections = makeRange(`must be an integer of at least ${minMaxConnections}`, minMaxConnections)

const collectorUrl = makeRule("must be a URL like http://collector:4318", Predicate.isString, (url) =>
  ["http:", "https:"].includes(URL.parse(url)?.protocol ?? "")
)

const actorName = makeRule(
  `must have at most ${sizes.nameLength} characters and no control characters`,
  Predicate.isString,
  (name) => fitsName(name) && !/\p{Cc}/u.test(name)
)

const databaseUrl: Rule = (url) =>
  String(url).trim() === "" ? "must not be empty; unset it to use the embedded database" : postgresUrl(url)

const durationUnits: Readonly<Record<string, string>> = {
  ms: "millis",
  s: "seconds",
  m: "minutes",
  h: "hours",
  d: "days"
}

/** Parses a duration such as `5s`, `500 ms` or `5 seconds`. Returns milliseconds. */
const parseDuration = (text: string): number | undefined => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?) ?(ms|[smhd])$/.exec(text) ?? []
  const long = amount === undefined ? text : `${amount} ${durationUnits[unit]}`
  return Option.getOrUndefined(Option.map(Duration.fromInput(long as Duration.Input), Duration.toMillis))
}

const duration = makeRange("must be a duration such as 5s or 5 seconds", 0)

/**
 * A Node timer can wait at most 2^31 - 1 ms, about 596.5 hours. A longer timer fires immediately. The remaining half
 * hour is for the drain and the stop timeout, which are added to the grace period.
 */
const timeout = makeRange("must be at most 596 hours", 0, Duration.toMillis("596 hours"))

/**
 * Reads the configuration from environment variables. Fails with one message about all invalid variables. The help
 * texts of the variables are in `cli/input/Environment.ts`.
 */
export const readConfig = Effect.fnUntraced(function* (env: Readonly<Record<string, string | undefined>>) {
  const problems: Array<string> = []
  /** Reads a variable. Its default replaces an unset or empty value. `parse` returns undefined for an invalid text. */
  const read = <Name extends VariableName, A>(
    name: Name,
    rule: Rule,
    parse: (text: string) => A | undefined,
    defaultValue = (variables[name] as Variable).defaultValue
  ): Value<Name, A> => {
    // An empty DATABASE_URL does not count as unset, so that a missing secret does not select the embedded database.
    const isUnset = env[name] === undefined || (env[name] === "" && name !== "DATABASE_URL")
    const text = isUnset ? defaultValue : env[name]
    const value = text === undefined ? undefined : parse(text)
    const problem = text === undefined ? undefined : rule(value)
    if (problem !== undefined) problems.push(`${name} ${problem}`)
    // The value of an invalid variable is undefined, and is never used.
    return value as Value<Name, A>
  }
  const readChoice = <const A extends string>(
    name: "MCP" | "LOG_LEVEL" | "LOG_FORMAT",
    problem: string,
    values: ReadonlyArray<A>,
    defaultValue?: A
  ): A => {
    const find = (text: string) => values.find((value) => value.toLowerCase() === text.toLowerCase())
    return read(name, makeRule(problem, Predicate.isString), find, defaultValue)
  }
  const readSecret = (name: VariableName, rule: Rule) => {
    const url = read(name, rule, String)
    return url === undefined ? undefined : Redacted.make(url)
  }

  const config = {
    databaseUrl: readSecret("DATABASE_URL", databaseUrl),
    databaseFeedUrl: readSecret("DATABASE_FEED_URL", postgresUrl),
    databaseMaxConnections: read("DATABASE_MAX_CONNECTIONS", maxConnections, parseInteger),
    dataDir: read("DATA_DIR", anyText, String),
    redisUrl: readSecret("REDIS_URL", redisUrl),
    host: read("HOST", anyText, String),
    port: read("PORT", port, parseInteger),
    /** If undefined, responses contain paths instead of URLs. */
    publicUrl: read("PUBLIC_URL", publicUrl, parsePublicUrl),
    rateLimits: {
      perKey: read("RATE_LIMIT_PER_KEY", rateLimit, parseInteger),
      perProcess: read("RATE_LIMIT_PER_PROCESS", rateLimit, parseInteger)
    },
    mcp: readChoice("MCP", "must be on or off", ["on", "off"]) === "on",
    metricsHost: read("METRICS_HOST", anyText, String),
    metricsPort: read("METRICS_PORT", port, parseInteger),
    otlpEndpoint: read("OTEL_EXPORTER_OTLP_ENDPOINT", collectorUrl, String),
    /** How long known responses are served after the last contact with the database, in milliseconds; 0 means never. */
    outageMaxAgeMs: read("OUTAGE_MAX_AGE", duration, parseDuration),
    shutdownGraceMs: read("SHUTDOWN_GRACE", (value) => duration(value) ?? timeout(value), parseDuration),
    actor: read("PROMPT_RETRIEVAL_ACTOR", actorName, String),
    logLevel: readChoice("LOG_LEVEL", `must be one of ${LogLevel.values.join(", ")}`, LogLevel.values),
    logFormat: readChoice(
      "LOG_FORMAT",
      "must be pretty or json",
      ["pretty", "json"],
      process.stderr.isTTY ? "pretty" : undefined
    )
  }
  if (problems.length > 0) return yield* new InvalidConfig({ message: problems.join("; ") })
  if (config.databaseUrl === undefined && config.databaseFeedUrl !== undefined)
    return yield* new InvalidConfig({ message: "DATABASE_FEED_URL needs DATABASE_URL" })
  return config
})

/** The configuration of this process, from its environment. */
export type ServiceConfig = Effect.Success<ReturnType<typeof readConfig>>
