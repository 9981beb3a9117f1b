import * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as LogLevel from "effect/LogLevel"
import * as Redacted from "effect/Redacted"
import { defaultRateLimits, type RateLimits } from "../../application/Admission.ts"
import { CliFailure } from "./CliFailure.ts"

/** The environment that operators set (DESIGN.md section 9). */
export interface Environment {
  /** Unset: the embedded database in `dataDir`. */
  readonly databaseUrl: Redacted.Redacted | undefined
  readonly dataDir: string
  /** Unset: rate limits are counted in this process. */
  readonly redisUrl: Redacted.Redacted | undefined
  readonly host: string
  readonly port: number
  readonly rateLimits: RateLimits
  /** Where metrics are served; unset: nowhere. */
  readonly metricsPort: number | undefined
  /** The base URL of an OpenTelemetry collector; unset: nothing is sent. */
  readonly otlpEndpoint: string | undefined
  /** Milliseconds. */
  readonly shutdownGrace: number
  readonly logLevel: LogLevel.LogLevel
  readonly logFormat: "pretty" | "json"
}

const isEncoded = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Whether a driver can read a URL: its scheme, a host, its escapes, and what it names on the host. */
const isServer = (
  redacted: Redacted.Redacted,
  schemes: ReadonlyArray<string>,
  names: (path: string) => boolean
): boolean => {
  const text = Redacted.value(redacted)
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password, pathname } = new URL(text)
  return (
    schemes.includes(protocol) &&
    hostname !== "" &&
    [username, password, pathname].every(isEncoded) &&
    names(pathname)
  )
}

const hasHttpScheme = (url: string): boolean =>
  URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)

const port = <D>(name: string, byDefault: D) =>
  variable(
    name,
    Config.Int(name),
    byDefault,
    "must be a port, 0 to 65535",
    (value) => value >= 0 && value <= 65535
  )

const positive = (name: string, byDefault: number) =>
  variable(name, Config.Int(name), byDefault, "must be an integer of at least 1", (value) => value >= 1)

/** One variable: unset or empty is its default; a value that breaks the rule is told by name, without the value. */
const variable = <A, D>(
  name: string,
  config: Config.Config<A>,
  byDefault: D,
  rule: string,
  holds: (value: A) => boolean = () => true
): Effect.Effect<A | D, CliFailure> =>
  process.env[name] === undefined || process.env[name] === ""
    ? Effect.succeed(byDefault)
    : config.parse(ConfigProvider.fromEnv({ env: process.env as Record<string, string> })).pipe(
        Effect.filterOrFail(holds, () => undefined),
        Effect.mapError(() => new CliFailure({ message: `${name} ${rule}` }))
      )

/**
 * Timers hold at most 2^31 - 1 ms, about 596.5 hours, and fire at once beyond. The difference is room for the drain and
 * the deadline after the grace.
 */
const maxShutdownGrace = Duration.hours(596)

const shutdownGrace = variable(
  "SHUTDOWN_GRACE",
  Config.Duration("SHUTDOWN_GRACE"),
  Duration.zero,
  "must be a duration such as 5 seconds",
  (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= 0
).pipe(
  Effect.filterOrFail(
    Duration.isLessThanOrEqualTo(maxShutdownGrace),
    () => new CliFailure({ message: "SHUTDOWN_GRACE must be at most 596 hours" })
  ),
  Effect.map(Duration.toMillis)
)

/** Reads the environment; the first variable that is wrong fails with one line that names it. */
export const readEnvironment: Effect.Effect<Environment, CliFailure> = Effect.gen(function* () {
  const string = (name: string, byDefault: string) =>
    variable(name, Config.String(name), byDefault, "must be a text")
  return {
    databaseUrl: yield* variable(
      "DATABASE_URL",
      Config.Redacted("DATABASE_URL"),
      undefined,
      "must be a URL like postgres://user:password@host:5432/database",
      (url) => isServer(url, ["postgres:", "postgresql:"], () => true)
    ),
    dataDir: yield* string("DATA_DIR", ".data"),
    redisUrl: yield* variable(
      "REDIS_URL",
      Config.Redacted("REDIS_URL"),
      undefined,
      "must be a URL like redis://host:6379",
      (url) => isServer(url, ["redis:", "rediss:"], (path) => /^\/?\d*$/.test(path))
    ),
    host: yield* string("HOST", "127.0.0.1"),
    port: yield* port("PORT", 3000),
    rateLimits: {
      perKey: yield* positive("RATE_LIMIT_PER_KEY", defaultRateLimits.perKey),
      perProcess: yield* positive("RATE_LIMIT_PER_PROCESS", defaultRateLimits.perProcess)
    },
    metricsPort: yield* port("METRICS_PORT", undefined),
    otlpEndpoint: yield* variable(
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      Config.String("OTEL_EXPORTER_OTLP_ENDPOINT"),
      undefined,
      "must be a URL like http://collector:4318",
      hasHttpScheme
    ),
    shutdownGrace: yield* shutdownGrace,
    logLevel: yield* variable(
      "LOG_LEVEL",
      Config.LogLevel("LOG_LEVEL"),
      "Info" as const,
      "must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None"
    ),
    logFormat: yield* variable(
      "LOG_FORMAT",
      Config.Literals(["pretty", "json"], "LOG_FORMAT"),
      process.stderr.isTTY ? ("pretty" as const) : ("json" as const),
      "must be pretty or json"
    )
  }
})
