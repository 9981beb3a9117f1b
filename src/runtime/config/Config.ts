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
import { postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./ConfigRules.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"

/**
 * Variables are invalid. The message names each variable and its rule, but not its value, because the value may be a
 * secret.
 */
export class InvalidConfig extends Data.TaggedError("InvalidConfig")<{ readonly message: string }> {}

const makeConfigError = (message: string): Config.ConfigError =>
  new Config.ConfigError(new ConfigProvider.SourceError({ message }))

interface Reader<A> {
  /** The rule of the value. Begins with "must". */
  readonly rule: string
  /** Returns undefined for text that breaks the rule. */
  readonly parse: (text: string) => A | undefined
}

/** Reads the text of a variable. Returns the default of the variable if the variable is unset or empty. */
const readText = (name: VariableName): Config.Config<string | undefined> => {
  const { defaultValue }: Variable = variables[name]
  return Config.map(Config.withDefault(Config.String(name), ""), (text) =>
    text === "" ? defaultValue : text
  )
}

/**
 * Reads a variable that may be unset. The message of every failure is `<name> <rule>`, because Effect's own messages
 * contain the value, which may be a secret.
 */
const readOptional = <A>(name: VariableName, { rule, parse }: Reader<A>): Config.Config<A | undefined> =>
  Config.mapEffect(readText(name), (text) => {
    if (text === undefined) return Effect.undefined
    const value = parse(text)
    return value === undefined ? Effect.fail(makeConfigError(`${name} ${rule}`)) : Effect.succeed(value)
  })

type Defaulted = {
  [Name in VariableName]: (typeof variables)[Name] extends { readonly defaultValue: string } ? Name : never
}[VariableName]

const readWithDefault = <A>(name: Defaulted, reader: Reader<A>) =>
  readOptional(name, reader) as Config.Config<A>

/** Makes the reader of a value whose rule also applies to an option of `createPromptApi`. */
const makeReader = <A>(
  { text, findProblem }: Rule<A>,
  parse: (text: string) => A | undefined
): Reader<A> => ({
  rule: text,
  parse: (given) => {
    const value = parse(given)
    return value === undefined || findProblem(value) !== undefined ? undefined : value
  }
})

const readUrl = <A>(name: VariableName, rule: Rule<string>, convert: (url: string) => A) =>
  Config.map(readOptional(name, makeReader(rule, String)), (url) =>
    url === undefined ? undefined : convert(url)
  )

const makeChoiceReader = <const A extends string>(rule: string, values: ReadonlyArray<A>): Reader<A> => ({
  rule,
  parse: (text) => values.find((value) => value.toLowerCase() === text.toLowerCase())
})

const textReader: Reader<string> = { rule: "must be a string", parse: String }

const parseInteger = (text: string): number | undefined =>
  text.trim() !== "" && Number.isInteger(Number(text)) ? Number(text) : undefined

const portReader: Reader<number> = {
  rule: "must be a port, 0 to 65535",
  parse: (text) => {
    const value = parseInteger(text)
    return value !== undefined && value >= 0 && value <= 65535 ? value : undefined
  }
}

const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)

/**
 * A Node timer can wait at most 2^31 - 1 ms, about 596.5 hours; a longer timer fires immediately. The remaining half
 * hour is for the drain and the stop timeout, which are added to the grace period.
 */
const maxShutdownGrace = Duration.hours(596)

const durationUnits: Readonly<Record<string, string>> = {
  ms: "millis",
  s: "seconds",
  m: "minutes",
  h: "hours",
  d: "days"
}

/** Parses a duration such as `5s`, `500 ms` or `5 seconds`. */
const parseDuration = (text: string): Duration.Duration | undefined => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?) ?([a-z]+)$/.exec(text) ?? []
  const long = Object.hasOwn(durationUnits, unit) ? `${amount} ${durationUnits[unit]}` : text
  return Option.getOrUndefined(Duration.fromInput(long as Duration.Input))
}

const durationReader: Reader<Duration.Duration> = {
  rule: "must be a duration such as 5s or 5 seconds",
  parse: (text) => {
    const value = parseDuration(text)
    return value !== undefined && Duration.isFinite(value) && Duration.toMillis(value) >= 0
      ? value
      : undefined
  }
}

const shutdownGraceMs = readWithDefault("SHUTDOWN_GRACE", durationReader).pipe(
  Config.mapEffect((duration) =>
    Duration.isLessThanOrEqualTo(duration, maxShutdownGrace)
      ? Effect.succeed(Duration.toMillis(duration))
      : Effect.fail(makeConfigError("SHUTDOWN_GRACE must be at most 596 hours"))
  )
)

/**
 * `DATABASE_URL`. An empty value is an error, unlike for other variables, so that a secret that is missing by mistake
 * does not select the embedded database.
 */
const databaseUrl = Config.option(Config.String("DATABASE_URL")).pipe(
  Config.mapEffect((option) => {
    if (Option.isNone(option)) return Effect.undefined
    const problem =
      option.value.trim() === ""
        ? "must not be empty; unset it to use the embedded database"
        : postgresUrl.findProblem(option.value)
    return problem === undefined
      ? Effect.succeed(Redacted.make(option.value))
      : Effect.fail(makeConfigError(`DATABASE_URL ${problem}`))
  })
)

const maxConnectionsReader: Reader<number> = {
  rule: `must be an integer of at least ${minMaxConnections}`,
  parse: (text) => {
    const value = parseInteger(text)
    return value !== undefined && value >= minMaxConnections ? value : undefined
  }
}

const settings = {
  databaseUrl,
  databaseFeedUrl: readUrl("DATABASE_FEED_URL", postgresUrl, (url) => Redacted.make(url)),
  databaseMaxConnections: readWithDefault("DATABASE_MAX_CONNECTIONS", maxConnectionsReader),
  dataDir: readWithDefault("DATA_DIR", textReader),
  redisUrl: readUrl("REDIS_URL", redisUrl, (url) => Redacted.make(url)),
  host: readWithDefault("HOST", textReader),
  port: readWithDefault("PORT", portReader),
  /** If undefined, responses contain paths instead of URLs. */
  publicUrl: readUrl("PUBLIC_URL", publicUrl, parsePublicUrl),
  rateLimitPerKey: readWithDefault("RATE_LIMIT_PER_KEY", makeReader(rateLimit, parseInteger)),
  rateLimitPerProcess: readWithDefault("RATE_LIMIT_PER_PROCESS", makeReader(rateLimit, parseInteger)),
  mcp: Config.map(
    readWithDefault("MCP", makeChoiceReader("must be on or off", ["on", "off"])),
    (value) => value === "on"
  ),
  metricsHost: readOptional("METRICS_HOST", textReader),
  metricsPort: readOptional("METRICS_PORT", portReader),
  otlpEndpoint: readOptional("OTEL_EXPORTER_OTLP_ENDPOINT", {
    rule: "must be a URL like http://collector:4318",
    parse: (text) => (isHttpUrl(text) ? text : undefined)
  }),
  /**
   * The maximum time since the last contact with the database. 0 means that no response is served without the database.
   */
  outageMaxAgeMs: Config.map(readWithDefault("OUTAGE_MAX_AGE", durationReader), Duration.toMillis),
  shutdownGraceMs,
  actor: readOptional("PROMPT_RETRIEVAL_ACTOR", {
    rule: `must have at most ${sizes.nameLength} characters and no control characters`,
    parse: (name) => (fitsName(name) && !/\p{Cc}/u.test(name) ? name : undefined)
  }),
  logLevel: readWithDefault(
    "LOG_LEVEL",
    makeChoiceReader("must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None", LogLevel.values)
  ),
  logFormat: Config.map(
    Config.all([
      readWithDefault("LOG_FORMAT", makeChoiceReader("must be pretty or json", ["pretty", "json"])),
      Config.withDefault(Config.String("LOG_FORMAT"), "")
    ]),
    ([format, given]) => (given === "" && process.stderr.isTTY ? "pretty" : format)
  )
}

/** Reads all settings. The message of a failure names each invalid variable. */
const readSettings = Effect.gen(function* () {
  const results = yield* Effect.all(settings, { mode: "result" })
  const problems = Object.values<Result.Result<unknown, Config.ConfigError>>(results).flatMap((result) =>
    Result.isFailure(result) ? [result.failure.cause.message] : []
  )
  if (problems.length > 0) return yield* new InvalidConfig({ message: problems.join("; ") })
  const { rateLimitPerKey, rateLimitPerProcess, ...others } = Result.getOrThrow(Result.all(results))
  return { ...others, rateLimits: { perKey: rateLimitPerKey, perProcess: rateLimitPerProcess } }
})

/** The configuration of this process, from its environment. `variables` in `Environment.ts` describes the values. */
export type ServiceConfig = Effect.Success<typeof readSettings>

/**
 * Fails if `DATABASE_FEED_URL` is set and `DATABASE_URL` is not. The embedded database has its own change feed.
 */
const assertDatabaseUrl = ({ databaseUrl, databaseFeedUrl }: ServiceConfig) =>
  databaseUrl === undefined && databaseFeedUrl !== undefined
    ? Effect.fail(new InvalidConfig({ message: "DATABASE_FEED_URL needs DATABASE_URL" }))
    : Effect.void

/** The environment of this process. Keeps empty variables, because `readConfig` rejects an empty `DATABASE_URL`. */
export const environment = ConfigProvider.fromEnv({ preserveEmptyStrings: true })

/** Reads the configuration from the current `ConfigProvider`. Fails if a variable is invalid. */
export const readConfig: Effect.Effect<ServiceConfig, InvalidConfig> = Effect.tap(
  readSettings,
  assertDatabaseUrl
)
