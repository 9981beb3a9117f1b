import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, it } from "vitest"
import { serveVariables } from "../../../src/adapters/inbound/cli/input/Environment.ts"
import { InvalidConfig, readConfig } from "../../../src/runtime/config/Config.ts"
import { run } from "../../support/services/startService.ts"

/** For each variable: its setting, the default of the setting, a text for the variable, and the value of the text. */
const settings: ReadonlyArray<
  readonly [name: string, setting: string, defaultValue: unknown, text: string, value: unknown]
> = [
  ["DATABASE_URL", "databaseUrl", undefined, "postgres://ada@db/prompts", "postgres://ada@db/prompts"],
  ["DATABASE_FEED_URL", "databaseFeedUrl", undefined, "postgres://primary", "postgres://primary"],
  ["DATABASE_MAX_CONNECTIONS", "databaseMaxConnections", 12, " 10\n", 10],
  ["DATA_DIR", "dataDir", ".data", "/data", "/data"],
  ["REDIS_URL", "redisUrl", undefined, "rediss://cache/1", "rediss://cache/1"],
  ["HOST", "host", "127.0.0.1", "::1", "::1"],
  ["PORT", "port", 3000, "0", 0],
  ["PUBLIC_URL", "publicUrl", undefined, "HTTPS://A.example:443/api/", "https://a.example/api"],
  ["RATE_LIMIT_PER_KEY", "perKey", 100, "9007199254740991", 9007199254740991],
  ["RATE_LIMIT_PER_PROCESS", "perProcess", 500, "2", 2],
  ["MCP", "mcp", false, "on", true],
  ["METRICS_HOST", "metricsHost", undefined, "10.0.0.1", "10.0.0.1"],
  ["METRICS_PORT", "metricsPort", undefined, "9464", 9464],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "otlpEndpoint", undefined, "http://otel:4318", "http://otel:4318"],
  ["OUTAGE_MAX_AGE", "outageMaxAgeMs", 300_000, "0 seconds", 0],
  ["SHUTDOWN_GRACE", "shutdownGraceMs", 0, "5 seconds", 5_000],
  ["PROMPT_RETRIEVAL_ACTOR", "actor", undefined, "ci", "ci"],
  ["LOG_LEVEL", "logLevel", "Info", "dEbUg", "Debug"],
  ["LOG_FORMAT", "logFormat", process.stderr.isTTY ? "pretty" : "json", "pretty", "pretty"]
]

/** Reads the configuration into one flat object, with redacted URLs as plain text. */
const readFrom = (env: Record<string, string>) => {
  const { rateLimits, ...others } = Effect.runSync(readConfig(env))
  const reveal = (value: unknown) => (Redacted.isRedacted(value) ? Redacted.value(value) : value)
  return Object.fromEntries(
    Object.entries({ ...others, ...rateLimits }).map(([name, value]) => [name, reveal(value)])
  )
}

it("readConfig returns the defaults for variables that are unset, and for empty variables other than DATABASE_URL", () => {
  const defaults = Object.fromEntries(settings.map(([, setting, value]) => [setting, value]))
  expect(readFrom({})).toEqual(defaults)
  const names = serveVariables.filter((name) => name !== "DATABASE_URL")
  expect(readFrom(Object.fromEntries(names.map((name) => [name, ""])))).toEqual(defaults)
})

it("readConfig returns the value of every variable", () => {
  const env = Object.fromEntries(settings.map(([name, , , text]) => [name, text]))
  const values = Object.fromEntries(settings.map(([, setting, , , value]) => [setting, value]))
  expect(readFrom(env)).toStrictEqual(values)
})

it.each<readonly [Record<string, string>, string]>([
  [{ DATABASE_URL: "s3cret" }, "DATABASE_URL must be a URL like postgres://user:password@host:5432/database"],
  [{ DATABASE_URL: "" }, "DATABASE_URL must not be empty; unset it to use the embedded database"],
  [{ OUTAGE_MAX_AGE: "5" }, "OUTAGE_MAX_AGE must be a duration such as 5s or 5 seconds"],
  [{ DATABASE_FEED_URL: "postgres://host/s3cret" }, "DATABASE_FEED_URL needs DATABASE_URL"],
  [{ DATABASE_MAX_CONNECTIONS: "5" }, "DATABASE_MAX_CONNECTIONS must be an integer of at least 6"],
  [{ REDIS_URL: "redis://s3cret/name" }, "REDIS_URL must be a URL like redis://host:6379"],
  [{ PUBLIC_URL: "https://ada:s3cret@prompts.example.com" }, "PUBLIC_URL must be an http or https URL"],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: "s3cret" }, "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL like http://"],
  [{ PROMPT_RETRIEVAL_ACTOR: "s3cret\n" }, "PROMPT_RETRIEVAL_ACTOR must have at most 256 characters"],
  [{ PORT: "65536" }, "PORT must be a port, 0 to 65535"],
  [{ SHUTDOWN_GRACE: "-1 second" }, "SHUTDOWN_GRACE must be a duration such as 5s or 5 seconds"],
  // The longest timer of Node ends after 2,147,483,647 ms.
  [{ SHUTDOWN_GRACE: "597 hours" }, "SHUTDOWN_GRACE must be at most 596 hours"],
  [{ LOG_LEVEL: "s3cret" }, "LOG_LEVEL must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None"],
  [{ LOG_FORMAT: "xml" }, "LOG_FORMAT must be pretty or json"],
  [
    { LOG_FORMAT: "s3cret", PORT: "8 0", DATABASE_URL: "", RATE_LIMIT_PER_KEY: "1e3", METRICS_PORT: "0x50" },
    "DATABASE_URL must .*; PORT must .*; RATE_LIMIT_PER_KEY must .*; METRICS_PORT must .*; LOG_FORMAT must .*$"
  ]
])("the error of readConfig names every invalid variable, but no value: %o", (env, message) => {
  const error = Effect.runSync(Effect.flip(readConfig(env)))
  expect(error).toBeInstanceOf(InvalidConfig)
  expect(error.message).toMatch(new RegExp(`^${message}`))
  expect(error.message).not.toContain("s3cret")
})

it("readConfig reads durations in every unit", () => {
  const durations = ["250ms", "1.5 s", "2m", "1h", "1d", "596 hours"]
  const milliseconds = durations.map((text) => readFrom({ SHUTDOWN_GRACE: text }).shutdownGraceMs)
  expect(milliseconds).toEqual([250, 1_500, 120_000, 3_600_000, 86_400_000, 2_145_600_000])
})

it("if DATABASE_URL is empty, serve exits with 1 and prints one line that says how to fix the problem", async () => {
  const stderr = "prompt-retrieval: DATABASE_URL must not be empty; unset it to use the embedded database\n"
  expect(await run(["serve"], { DATABASE_URL: "" })).toEqual({ code: 1, stdout: "", stderr })
})
