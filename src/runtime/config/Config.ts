import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { type Variable, type VariableName, variables } from "../../adapters/inbound/cli/input/Environment.ts"
import { parsePublicUrl } from "../../adapters/inbound/http/request/PublicUrl.ts"
import { minMaxConnections } from "../../adapters/outbound/postgres/connection/ConnectionBudget.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"
import { makeRule, postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./ConfigRules.ts"

/**
 * Variables are invalid. The message names each variable and its rule, but not its value, because the value may be a
 * secret.
 */
export class InvalidConfig extends Data.TaggedError("InvalidConfig")<{ readonly message: string }> {}

/**
 * Reads a variable that may be unset. Returns the default of the variable if the variable is unset or empty. An empty
 * `DATABASE_URL` is not unset, so that a secret that is missing by mistake does not select the embedded database.
 *
 * The message of every failure is `<name> <rule>`, because Effect's own messages contain the value, which may be a
 * secret.
 *
 * @param parse returns undefined for text that breaks the rule
 */
const readOptional = <A>(
  name: VariableName,
  rule: Rule<A>,
  parse: (text: string) => A | undefined,
  defaultValue = (variables[name] as Variable).defaultValue
): Config.Config<A | undefined> =>
  Config.mapEffect(Config.option(Config.String(name)), (given) => {
    const isUnset = Option.isNone(given) || (given.value === "" && name !== "DATABASE_URL")
    const text = isUnset ? defaultValue : given.value
    if (text === undefined) return Effect.undefined
    const value = parse(text)
    const problem = value === undefined ? rule.text : rule.findProblem(value)
    if (problem === undefined) return Effect.succeed(value)
    const message = `${name} ${problem}`
    return Effect.fail(new Config.ConfigError(new ConfigProvider.SourceError({ message })))
  })

type Defaulted = {
  [Name in VariableName]: (typeof variables)[Name] extends { readonly defaultValue: string } ? Name : never
}[VariableName]

const readWithDefault = <A>(
  name: Defaulted,
  rule: Rule<A>,
  parse: (text: string) => A | undefined,
  defaultValue?: string
) => readOptional(name, rule, parse, defaultValue) as Config.Config<A>

const anyText = makeRule<string>("must be a string", () => true)

const readUrl = <A>(name: VariableName, rule: Rule<string>, convert: (url: string) => A) =>
  Config.map(readOptional(name, rule, String), (url) => (url === undefined ? undefined : convert(url)))

const readChoice = <const A extends string>(
  name: Defaulted,
  rule: string,
  values: ReadonlyArray<A>,
  defaultValue?: A
): Config.Config<A> =>
  readWithDefault(
    name,
    makeRule<A>(rule, () => true),
    (text) => values.find((value) => value.toLowerCase() === text.toLowerCase()),
    defaultValue
  )

const parseInteger = (text: string): number | undefined =>
  text.trim() !== "" && Number.isInteger(Number(text)) ? Number(text) : undefined

const port = makeRule<number>("must be a port, 0 to 65535", (value) => value >= 0 && value <= 65535)

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

const duration = makeRule<number>(
  "must be a duration such as 5s or 5 seconds",
  (value) => Number.isFinite(value) && value >= 0
)

/**
 * A Node timer can wait at most 2^31 - 1 ms, about 596.5 hours; a longer timer fires immediately. The remaining half
 * hour is for the drain and the stop timeout, which are added to the grace period.
 */
const maxShutdownGraceMs = Duration.toMillis("596 hours")

const settings = {
  databaseUrl: readUrl(
    "DATABASE_URL",
    {
      text: postgresUrl.text,
      findProblem: (url) =>
        url.trim() === ""
          ? "must not be empty; unset it to use the embedded database"
          : postgresUrl.findProblem(url)
    },
    (url) => Redacted.make(url)
  ),
  databaseFeedUrl: readUrl("DATABASE_FEED_URL", postgresUrl, (url) => Redacted.make(url)),
  databaseMaxConnections: readWithDefault(
    "DATABASE_MAX_CONNECTIONS",
    makeRule<number>(
      `must be an integer of at least ${minMaxConnections}`,
      (value) => value >= minMaxConnections
    ),
    parseInteger
  ),
  dataDir: readWithDefault("DATA_DIR", anyText, String),
  redisUrl: readUrl("REDIS_URL", redisUrl, (url) => Redacted.make(url)),
  host: readWithDefault("HOST", anyText, String),
  port: readWithDefault("PORT", port, parseInteger),
  /** If undefined, responses contain paths instead of URLs. */
  publicUrl: readUrl("PUBLIC_URL", publicUrl, parsePublicUrl),
  rateLimitPerKey: readWithDefault("RATE_LIMIT_PER_KEY", rateLimit, parseInteger),
  rateLimitPerProcess: readWithDefault("RATE_LIMIT_PER_PROCESS", rateLimit, parseInteger),
  mcp: Config.map(readChoice("MCP", "must be on or off", ["on", "off"]), (value) => value === "on"),
  metricsHost: readOptional("METRICS_HOST", anyText, String),
  metricsPort: readOptional("METRICS_PORT", port, parseInteger),
  otlpEndpoint: readOptional(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    makeRule<string>("must be a URL like http://collector:4318", (url) =>
      ["http:", "https:"].includes(URL.parse(url)?.protocol ?? "")
    ),
    String
  ),
  /**
   * The maximum time since the last contact with the database. 0 means that no response is served without the database.
   */
  outageMaxAgeMs: readWithDefault("OUTAGE_MAX_AGE", duration, parseDuration),
  shutdownGraceMs: readWithDefault(
    "SHUTDOWN_GRACE",
    {
      text: duration.text,
      findProblem: (value) =>
        duration.findProblem(value) ?? (value > maxShutdownGraceMs ? "must be at most 596 hours" : undefined)
    },
    parseDuration
  ),
  actor: readOptional(
    "PROMPT_RETRIEVAL_ACTOR",
    makeRule<string>(
      `must have at most ${sizes.nameLength} characters and no control characters`,
      (name) => fitsName(name) && !/\p{Cc}/u.test(name)
    ),
    String
  ),
  logLevel: readChoice(
    "LOG_LEVEL",
    "must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None",
    LogLevel.values
  ),
  logFormat: readChoice(
    "LOG_FORMAT",
    "must be pretty or json",
    ["pretty", "json"],
    process.stderr.isTTY ? "pretty" : undefined
  )
}

/** The environment of this process. Keeps empty variables, because an empty `DATABASE_URL` is invalid. */
export const environment = ConfigProvider.fromEnv({ preserveEmptyStrings: true })

/** Reads the configuration from the current `ConfigProvider`. The message of a failure names each invalid variable. */
export const readConfig = Effect.gen(function* () {
  const results = yield* Effect.all(settings, { mode: "result" })
  const problems = Object.values<Result.Result<unknown, Config.ConfigError>>(results).flatMap((result) =>
    Result.isFailure(result) ? [result.failure.cause.message] : []
  )
  if (problems.length > 0) return yield* new InvalidConfig({ message: problems.join("; ") })
  const { rateLimitPerKey, rateLimitPerProcess, ...others } = Result.getOrThrow(Result.all(results))
  if (others.databaseUrl === undefined && others.databaseFeedUrl !== undefined)
    return yield* new InvalidConfig({ message: "DATABASE_FEED_URL needs DATABASE_URL" })
  return { ...others, rateLimits: { perKey: rateLimitPerKey, perProcess: rateLimitPerProcess } }
})

/** The configuration of this process, from its environment. `variables` in `Environment.ts` describes the values. */
export type ServiceConfig = Effect.Success<typeof readConfig>
