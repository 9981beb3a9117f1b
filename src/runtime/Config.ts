import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as LogLevel from "effect/LogLevel"
import * as Redacted from "effect/Redacted"
import { defaultRateLimits, type RateLimits } from "../application/Admission.ts"

/** The configuration of this process, from its environment. */
export interface ServiceConfig {
  /** `DATABASE_URL`. Without it, the embedded database in `dataDir` is used. */
  readonly databaseUrl: Redacted.Redacted | undefined
  /** `DATA_DIR`. */
  readonly dataDir: string
  /** `REDIS_URL`. Without it, rate limits are counted in this process. */
  readonly redisUrl: Redacted.Redacted | undefined
  /** `HOST`. */
  readonly host: string
  /** `PORT`; 0 selects a free port. */
  readonly port: number
  /** `RATE_LIMIT_PER_KEY` and `RATE_LIMIT_PER_PROCESS`, in requests per minute. */
  readonly rateLimits: RateLimits
  /** `METRICS_PORT`. Without it, no metrics are served. */
  readonly metricsPort: number | undefined
  /** `OTEL_EXPORTER_OTLP_ENDPOINT`, the base URL of an OpenTelemetry collector. Without it, nothing is exported. */
  readonly otlpEndpoint: string | undefined
  /** `SHUTDOWN_GRACE`: how long to keep accepting connections after a stop signal, in milliseconds. */
  readonly shutdownGrace: number
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
  return config.pipe(
    Config.mapEffect((value) => (isValid(value) ? Effect.succeed(value) : Effect.fail(error))),
    Config.withDefault(defaultValue),
    Config.orElse(() => Config.fail(error.cause))
  )
}

const text = (name: string, defaultValue: string) =>
  variable(name, Config.String(name), defaultValue, "must be a string")

const port = <const D>(name: string, defaultValue: D) =>
  variable(
    name,
    Config.Int(name),
    defaultValue,
    "must be a port, 0 to 65535",
    (value) => value >= 0 && value <= 65535
  )

const positiveInt = (name: string, defaultValue: number) =>
  variable(name, Config.Int(name), defaultValue, "must be an integer of at least 1", (value) => value >= 1)

const isPercentEncoded = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** True if a driver can use the URL: one of the schemes, a host, valid percent-encoding, and a valid path. */
const isServerUrl = (
  url: Redacted.Redacted,
  schemes: ReadonlyArray<string>,
  isValidPath: (path: string) => boolean
): boolean => {
  const text = Redacted.value(url)
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, pathname } = new URL(text)
  return (
    schemes.includes(protocol) &&
    hostname !== "" &&
    [username, password, pathname].every(isPercentEncoded) &&
    isValidPath(pathname)
  )
}

const isHttpUrl = (url: string): boolean =>
  URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)

/**
 * Node's timers hold at most 2^31 - 1 ms, about 596.5 hours; longer timers fire at once. The remaining half hour leaves
 * room for the drain and the stop timeout, which follow the grace.
 */
const maxShutdownGrace = Duration.hours(596)

const shutdownGrace = variable(
  "SHUTDOWN_GRACE",
  Config.Duration("SHUTDOWN_GRACE"),
  Duration.zero,
  "must be a duration such as 5 seconds",
  (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= 0
).pipe(
  Config.mapEffect((duration) =>
    Duration.isLessThanOrEqualTo(duration, maxShutdownGrace)
      ? Effect.succeed(Duration.toMillis(duration))
      : Effect.fail(makeConfigError("SHUTDOWN_GRACE must be at most 596 hours"))
  )
)

const serviceConfig: Config.Config<ServiceConfig> = Config.all({
  databaseUrl: variable(
    "DATABASE_URL",
    Config.Redacted("DATABASE_URL"),
    undefined,
    "must be a URL like postgres://user:password@host:5432/database",
    (url) => isServerUrl(url, ["postgres:", "postgresql:"], () => true)
  ),
  dataDir: text("DATA_DIR", ".data"),
  redisUrl: variable(
    "REDIS_URL",
    Config.Redacted("REDIS_URL"),
    undefined,
    "must be a URL like redis://host:6379",
    (url) => isServerUrl(url, ["redis:", "rediss:"], (path) => /^\/?\d*$/.test(path))
  ),
  host: text("HOST", "127.0.0.1"),
  port: port("PORT", 3000),
  rateLimits: Config.all({
    perKey: positiveInt("RATE_LIMIT_PER_KEY", defaultRateLimits.perKey),
    perProcess: positiveInt("RATE_LIMIT_PER_PROCESS", defaultRateLimits.perProcess)
  }),
  metricsPort: port("METRICS_PORT", undefined),
  otlpEndpoint: variable(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Config.String("OTEL_EXPORTER_OTLP_ENDPOINT"),
    undefined,
    "must be a URL like http://collector:4318",
    isHttpUrl
  ),
  shutdownGrace,
  logLevel: variable(
    "LOG_LEVEL",
    Config.LogLevel("LOG_LEVEL"),
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

/** Reads the configuration from the current `ConfigProvider`. Fails for the first invalid variable. */
export const readConfig: Effect.Effect<ServiceConfig, InvalidConfig> = Effect.mapError(
  serviceConfig,
  ({ cause }) => new InvalidConfig({ message: cause.message })
)
