import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { parsePublicUrl } from "../adapters/inbound/http/request/PublicUrl.ts"
import { minMaxConnections } from "../adapters/outbound/postgres/connection/ConnectionBudget.ts"
import {
  findDefaultMaxConnections,
  findMinMaxConnections
} from "../adapters/outbound/postgres/replica/ReplicaBudget.ts"
import { defaultRateLimits, type RateLimits } from "../application/Admission.ts"
import { defaultOutageMaxAge } from "../application/Outage.ts"
import { postgresUrl, publicUrl, type Rule, rateLimit, redisUrl } from "./ConfigRules.ts"
import { splitServers } from "./ServerUrl.ts"
import { fitsName, sizes } from "../domain/Sizes.ts"

/** The configuration of this process, from its environment. */
export interface ServiceConfig {
  /** `DATABASE_URL`. Without it, the embedded database in `dataDir` is used. */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** `DATABASE_FEED_URL`, from where the change feed listens. Without it, the change feed uses `databaseUrl`. */
  readonly databaseFeedUrl: Redacted.Redacted | undefined
  /** `DATABASE_REPLICA_URL`, one URL for each of its hosts. */
  readonly databaseReplicaUrls: ReadonlyArray<Redacted.Redacted> | undefined
  /** `DATABASE_MAX_CONNECTIONS`: how many connections to PostgreSQL the process opens at most. */
  readonly databaseMaxConnections: number
  /** `DATA_DIR`. */
  readonly dataDir: string
  /** `REDIS_URL`. Without it, rate limits are counted in this process. */
  readonly redisUrl: Redacted.Redacted | undefined
  /** `HOST`. */
  readonly host: string
  /** `PORT`; 0 selects a free port. */
  readonly port: number
  /** `PUBLIC_URL`, the URL at which callers reach the service. Without it, the URL is derived from the host of each request. */
  readonly publicUrl: string | undefined
  /** `RATE_LIMIT_PER_KEY` and `RATE_LIMIT_PER_PROCESS`, in requests per minute. */
  readonly rateLimits: RateLimits
  /** `MCP`: whether `/mcp` serves the Model Context Protocol. */
  readonly mcp: boolean
  /** `METRICS_HOST`. Without it, metrics are served on `host`. */
  readonly metricsHost: string | undefined
  /** `METRICS_PORT`. Without it, no metrics are served. */
  readonly metricsPort: number | undefined
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`, the base URL of an OpenTelemetry collector. Without it, nothing is exported. */
  readonly otlpEndpoint: string | undefined
  /**
   * `OUTAGE_MAX_AGE`: how long responses are served without the database after the last contact with it, in
   * milliseconds; 0 turns this off.
   */
  readonly outageMaxAgeMs: number
  /** `SHUTDOWN_GRACE`: how long to keep accepting connections after a stop signal, in milliseconds. */
  readonly shutdownGraceMs: number
  /** `PROMPT_RETRIEVAL_ACTOR`. Without it, the audit log names the user and the host of this process. */
  readonly actor: string | undefined
  /** `LOG_LEVEL`. */
  readonly logLevel: LogLevel.LogLevel
  /** `LOG_FORMAT`; the default is `pretty` if stderr is a terminal, else `json`. */
  readonly logFormat: "pretty" | "json"
}

/** A variable is invalid. The message names the variable and its rule, never its value, which may be a secret. */
export class InvalidConfig extends Data.TaggedError("InvalidConfig")<{ readonly message: string }> {}

const makeConfigError = (message: string): Config.ConfigError =>
  new Config.ConfigError(new ConfigProvider.SourceError({ message }))

/**
 * Describes one variable. An unset or empty variable has the default value. Every failure becomes `<name> <rule>`,
 * because Effect's own messages contain the value.
 */
const variable = <A, const D>(
  name: string,
  config: Config.Config<A>,
  defaultValue: D,
  rule: string,
  isValid: (value: A) => boolean = () => true
): Config.Config<A | D> => {
  const error = makeConfigError(`${name} ${rule}`)
  const value = config.pipe(
    Config.mapEffect((value) => (isValid(value) ? Effect.succeed(value) : Effect.fail(error))),
    Config.orElse(() => Config.fail(error.cause))
  )
  return Config.String(name).pipe(
    Config.withDefault(""),
    Config.flatMap((text): Config.Config<A | D> => (text === "" ? Config.succeed(defaultValue) : value))
  )
}

/** Describes the value that `parse` returns for the text of a variable; undefined means that the text is invalid. */
const parsed = <A>(name: string, parse: (text: string) => A | undefined): Config.Config<A> =>
  Config.mapEffect(Config.String(name), (text) => {
    const value = parse(text)
    return value === undefined ? Effect.fail(makeConfigError(`${name} is invalid`)) : Effect.succeed(value)
  })

const text = <const D>(name: string, defaultValue: D) =>
  variable(name, Config.String(name), defaultValue, "must be a string")

const port = <const D>(name: string, defaultValue: D) =>
  variable(
    name,
    Config.Int(name),
    defaultValue,
    "must be a port, 0 to 65535",
    (value) => value >= 0 && value <= 65535
  )

/** Describes a variable whose rule an option of `createPromptApi` shares. */
const sharedVariable = <A, const D>(
  name: string,
  config: Config.Config<A>,
  defaultValue: D,
  { text, findProblem }: Rule<A>
) => variable(name, config, defaultValue, text, (value) => findProblem(value) === undefined)

/** Describes an optional URL, and converts it. */
const sharedUrl = <A>(name: string, rule: Rule<string>, convert: (url: string) => A) =>
  Config.map(sharedVariable(name, Config.String(name), undefined, rule), (url) =>
    url === undefined ? undefined : convert(url)
  )

const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)

/**
 * Node's timers hold at most 2^31 - 1 ms, about 596.5 hours; longer timers fire at once. The remaining half hour
 * leaves room for the drain and the stop timeout, which follow the grace.
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

const duration = (name: string, defaultValue: Duration.Duration) =>
  variable(
    name,
    parsed(name, parseDuration),
    defaultValue,
    "must be a duration such as 5s or 5 seconds",
    (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= 0
  )

const shutdownGraceMs = duration("SHUTDOWN_GRACE", Duration.zero).pipe(
  Config.mapEffect((duration) =>
    Duration.isLessThanOrEqualTo(duration, maxShutdownGrace)
      ? Effect.succeed(Duration.toMillis(duration))
      : Effect.fail(makeConfigError("SHUTDOWN_GRACE must be at most 596 hours"))
  )
)

const parseLogLevel = (text: string): LogLevel.LogLevel | undefined =>
  LogLevel.values.find((level) => level.toLowerCase() === text.toLowerCase())

/**
 * `DATABASE_URL`. Unlike other variables it must not be empty: a secret that is missing by mistake must not select the
 * embedded database.
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

/** `DATABASE_REPLICA_URL` and `DATABASE_MAX_CONNECTIONS`, whose default and minimum depend on the number of replicas. */
const replicas = Config.all({
  databaseReplicaUrls: sharedUrl("DATABASE_REPLICA_URL", postgresUrl, (urls) =>
    splitServers(urls).map((url) => Redacted.make(url))
  ),
  maxConnections: variable(
    "DATABASE_MAX_CONNECTIONS",
    Config.Int("DATABASE_MAX_CONNECTIONS"),
    undefined,
    `must be an integer of at least ${minMaxConnections}`,
    (count) => count >= minMaxConnections
  )
}).pipe(
  Config.mapEffect(({ databaseReplicaUrls, maxConnections }) => {
    const count = databaseReplicaUrls?.length ?? 0
    const min = findMinMaxConnections(count)
    const databaseMaxConnections = maxConnections ?? findDefaultMaxConnections(count)
    return databaseMaxConnections < min
      ? Effect.fail(
          makeConfigError(
            `DATABASE_MAX_CONNECTIONS must be an integer of at least ${min} with ${count} ${count === 1 ? "host" : "hosts"} in DATABASE_REPLICA_URL`
          )
        )
      : Effect.succeed({ databaseReplicaUrls, databaseMaxConnections })
  })
)

const otherConfig = Config.all({
  databaseUrl,
  databaseFeedUrl: sharedUrl("DATABASE_FEED_URL", postgresUrl, (url) => Redacted.make(url)),
  dataDir: text("DATA_DIR", ".data"),
  redisUrl: sharedUrl("REDIS_URL", redisUrl, (url) => Redacted.make(url)),
  host: text("HOST", "127.0.0.1"),
  port: port("PORT", 3000),
  publicUrl: sharedUrl("PUBLIC_URL", publicUrl, parsePublicUrl),
  rateLimits: Config.all({
    perKey: sharedVariable(
      "RATE_LIMIT_PER_KEY",
      Config.Int("RATE_LIMIT_PER_KEY"),
      defaultRateLimits.perKey,
      rateLimit
    ),
    perProcess: sharedVariable(
      "RATE_LIMIT_PER_PROCESS",
      Config.Int("RATE_LIMIT_PER_PROCESS"),
      defaultRateLimits.perProcess,
      rateLimit
    )
  }),
  mcp: Config.map(
    variable("MCP", Config.Literals(["on", "off"], "MCP"), "off", "must be on or off"),
    (value) => value === "on"
  ),
  metricsHost: text("METRICS_HOST", undefined),
  metricsPort: port("METRICS_PORT", undefined),
  otlpEndpoint: variable(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Config.String("OTEL_EXPORTER_OTLP_ENDPOINT"),
    undefined,
    "must be a URL like http://collector:4318",
    isHttpUrl
  ),
  outageMaxAgeMs: Config.map(
    duration("OUTAGE_MAX_AGE", Duration.millis(defaultOutageMaxAge)),
    Duration.toMillis
  ),
  shutdownGraceMs,
  actor: variable(
    "PROMPT_RETRIEVAL_ACTOR",
    Config.String("PROMPT_RETRIEVAL_ACTOR"),
    undefined,
    `must have at most ${sizes.nameLength} characters and no control characters`,
    (name) => fitsName(name) && !/\p{Cc}/u.test(name)
  ),
  logLevel: variable(
    "LOG_LEVEL",
    parsed("LOG_LEVEL", parseLogLevel),
    "Info",
    "must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None"
  ),
  logFormat: variable(
    "LOG_FORMAT",
    Config.Literals(["pretty", "json"], "LOG_FORMAT"),
    process.stderr.isTTY ? "pretty" : "json",
    "must be pretty or json"
  )
})

const serviceConfig: Config.Config<ServiceConfig> = Config.map(
  Config.all([otherConfig, replicas]),
  ([config, replicas]) => ({ ...config, ...replicas })
)

/** Fails if a URL needs that of the database: the embedded database has its own change feed, and no replicas. */
const assertDatabaseUrl = ({ databaseUrl, databaseFeedUrl, databaseReplicaUrls }: ServiceConfig) => {
  if (databaseUrl !== undefined) return Effect.void
  const fail = (name: string) => Effect.fail(new InvalidConfig({ message: `${name} needs DATABASE_URL` }))
  if (databaseFeedUrl !== undefined) return fail("DATABASE_FEED_URL")
  return databaseReplicaUrls !== undefined ? fail("DATABASE_REPLICA_URL") : Effect.void
}

/** The environment of this process. Keeps empty variables, because `readConfig` rejects an empty `DATABASE_URL`. */
export const environment = ConfigProvider.fromEnv({ preserveEmptyStrings: true })

/** Reads the configuration from the current `ConfigProvider`. Fails for the first invalid variable. */
export const readConfig: Effect.Effect<ServiceConfig, InvalidConfig> = Effect.mapError(
  serviceConfig,
  ({ cause }) => new InvalidConfig({ message: cause.message })
).pipe(Effect.tap(assertDatabaseUrl))
