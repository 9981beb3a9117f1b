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
  /** Milliseconds. */
  readonly shutdownGrace: number
  readonly logLevel: LogLevel.LogLevel
  readonly logFormat: "pretty" | "json"
}

const hasScheme = (url: Redacted.Redacted, schemes: ReadonlyArray<string>): boolean =>
  URL.canParse(Redacted.value(url)) && schemes.includes(new URL(Redacted.value(url)).protocol)

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
      (url) => hasScheme(url, ["postgres:", "postgresql:"])
    ),
    dataDir: yield* string("DATA_DIR", ".data"),
    redisUrl: yield* variable(
      "REDIS_URL",
      Config.Redacted("REDIS_URL"),
      undefined,
      "must be a URL like redis://host:6379",
      (url) => hasScheme(url, ["redis:", "rediss:"])
    ),
    host: yield* string("HOST", "127.0.0.1"),
    port: yield* variable(
      "PORT",
      Config.Int("PORT"),
      3000,
      "must be a port, 0 to 65535",
      (port) => port >= 0 && port <= 65535
    ),
    rateLimits: {
      perKey: yield* positive("RATE_LIMIT_PER_KEY", defaultRateLimits.perKey),
      perProcess: yield* positive("RATE_LIMIT_PER_PROCESS", defaultRateLimits.perProcess)
    },
    shutdownGrace: Duration.toMillis(
      yield* variable(
        "SHUTDOWN_GRACE",
        Config.Duration("SHUTDOWN_GRACE"),
        Duration.zero,
        "must be a duration such as 5 seconds",
        (duration) => Duration.isFinite(duration) && Duration.toMillis(duration) >= 0
      )
    ),
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
