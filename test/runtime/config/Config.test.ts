import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect, it } from "vitest"
import { serveVariables } from "../../../src/adapters/inbound/cli/input/Environment.ts"
import { InvalidConfig, readConfig } from "../../../src/runtime/config/Config.ts"
import { run } from "../../support/service.ts"

const defaults = {
  databaseUrl: undefined,
  databaseFeedUrl: undefined,
  databaseMaxConnections: 12,
  dataDir: ".data",
  redisUrl: undefined,
  host: "127.0.0.1",
  port: 3000,
  publicUrl: undefined,
  rateLimits: { perKey: 100, perProcess: 500 },
  mcp: false,
  metricsHost: undefined,
  metricsPort: undefined,
  otlpEndpoint: undefined,
  outageMaxAgeMs: 300_000,
  shutdownGraceMs: 0,
  actor: undefined,
  logLevel: "Info",
  logFormat: process.stderr.isTTY ? "pretty" : "json"
} as const

const readFrom = (env: Record<string, string>) => Effect.runSync(readConfig(env))

it("readConfig returns the defaults for variables that are unset, and for empty variables other than DATABASE_URL", () => {
  expect(readFrom({})).toEqual(defaults)
  const names = serveVariables.filter((name) => name !== "DATABASE_URL")
  expect(readFrom(Object.fromEntries(names.map((name) => [name, ""])))).toEqual(defaults)
})

it("readConfig returns the value of every variable", () => {
  const databaseUrl = "postgres://ada:secret@db:5432/prompts"
  const config = readFrom({
    DATABASE_URL: databaseUrl,
    DATABASE_FEED_URL: "postgres://ada:secret@primary/prompts",
    DATABASE_MAX_CONNECTIONS: "10",
    DATA_DIR: "/data",
    REDIS_URL: "rediss://cache/1",
    HOST: "::1",
    PORT: "0",
    PUBLIC_URL: "HTTPS://Prompts.example.com:443/api/",
    RATE_LIMIT_PER_KEY: "1",
    RATE_LIMIT_PER_PROCESS: "2",
    MCP: "on",
    METRICS_HOST: "10.0.0.1",
    METRICS_PORT: "9464",
    OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
    OUTAGE_MAX_AGE: "0 seconds",
    SHUTDOWN_GRACE: "5 seconds",
    PROMPT_RETRIEVAL_ACTOR: "ci",
    LOG_LEVEL: "dEbUg",
    LOG_FORMAT: "pretty"
  })
  expect(Redacted.value(config.databaseUrl!)).toBe(databaseUrl)
  expect(Redacted.value(config.databaseFeedUrl!)).toBe("postgres://ada:secret@primary/prompts")
  expect(Redacted.value(config.redisUrl!)).toBe("rediss://cache/1")
  expect(config).toMatchObject({
    databaseMaxConnections: 10,
    dataDir: "/data",
    host: "::1",
    port: 0,
    publicUrl: "https://prompts.example.com/api",
    rateLimits: { perKey: 1, perProcess: 2 },
    mcp: true,
    metricsHost: "10.0.0.1",
    metricsPort: 9464,
    otlpEndpoint: "http://collector:4318",
    outageMaxAgeMs: 0,
    shutdownGraceMs: 5_000,
    actor: "ci",
    logLevel: "Debug",
    logFormat: "pretty"
  })
})

it.each<readonly [Record<string, string>, string]>([
  [{ DATABASE_URL: "s3cret" }, "DATABASE_URL must be a URL like postgres://user:password@host:5432/database"],
  [{ DATABASE_URL: "" }, "DATABASE_URL must not be empty; unset it to use the embedded database"],
  [
    { DATABASE_URL: "postgres://host/db?sslmode=s3cret" },
    "DATABASE_URL must have one of these as its sslmode: disable, allow, prefer, require, verify-ca, verify-full"
  ],
  [{ OUTAGE_MAX_AGE: "5" }, "OUTAGE_MAX_AGE must be a duration such as 5s or 5 seconds"],
  [
    { DATABASE_URL: "postgres://host/db", DATABASE_FEED_URL: "s3cret" },
    "DATABASE_FEED_URL must be a URL like postgres://user:password@host:5432/database"
  ],
  [{ DATABASE_FEED_URL: "postgres://host/s3cret" }, "DATABASE_FEED_URL needs DATABASE_URL"],
  [{ DATABASE_MAX_CONNECTIONS: "5" }, "DATABASE_MAX_CONNECTIONS must be an integer of at least 6"],
  [{ SHUTDOWN_GRACE: "5" }, "SHUTDOWN_GRACE must be a duration such as 5s or 5 seconds"],
  [{ REDIS_URL: "redis://s3cret/name" }, "REDIS_URL must be a URL like redis://host:6379"],
  [
    { PUBLIC_URL: "https://ada:s3cret@prompts.example.com" },
    "PUBLIC_URL must be an http or https URL without credentials, query and fragment, like https://prompts.example.com"
  ],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: "s3cret" },
    "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL like http://collector:4318"
  ],
  [
    { PROMPT_RETRIEVAL_ACTOR: "s3cret\n" },
    "PROMPT_RETRIEVAL_ACTOR must have at most 256 characters and no control characters"
  ],
  [{ PORT: "65536" }, "PORT must be a port, 0 to 65535"],
  [{ RATE_LIMIT_PER_KEY: "0" }, "RATE_LIMIT_PER_KEY must be an integer of at least 1"],
  [{ SHUTDOWN_GRACE: "-1 second" }, "SHUTDOWN_GRACE must be a duration such as 5s or 5 seconds"],
  // The longest timer of Node ends after 2,147,483,647 ms.
  [{ SHUTDOWN_GRACE: "597 hours" }, "SHUTDOWN_GRACE must be at most 596 hours"],
  [{ LOG_LEVEL: "s3cret" }, "LOG_LEVEL must be one of All, Fatal, Error, Warn, Info, Debug, Trace, None"],
  [{ LOG_FORMAT: "xml" }, "LOG_FORMAT must be pretty or json"],
  [
    { LOG_FORMAT: "s3cret", PORT: "s3cret", DATABASE_URL: "", RATE_LIMIT_PER_PROCESS: "0" },
    "DATABASE_URL must not be empty; unset it to use the embedded database; PORT must be a port, 0 to 65535; RATE_LIMIT_PER_PROCESS must be an integer of at least 1; LOG_FORMAT must be pretty or json"
  ]
])("readConfig names every invalid variable, but no value: %o", (env, message) => {
  expect(Effect.runSync(Effect.flip(readConfig(env)))).toEqual(new InvalidConfig({ message }))
})

it.each([
  ["250ms", 250],
  ["1.5 s", 1_500],
  ["2m", 120_000],
  ["1h", 3_600_000],
  ["1d", 86_400_000],
  ["5 seconds", 5_000],
  ["596 hours", 2_145_600_000]
])("readConfig reads the duration %s", (text, milliseconds) => {
  expect(readFrom({ SHUTDOWN_GRACE: text }).shutdownGraceMs).toBe(milliseconds)
})

it.each(["serve", "workspaces list"])(
  "the program does not ignore an empty DATABASE_URL: %s exits with 1 and one line",
  async (command) => {
    expect(await run(command.split(" "), { DATABASE_URL: "" })).toEqual({
      code: 1,
      stdout: "",
      stderr: "prompt-retrieval: DATABASE_URL must not be empty; unset it to use the embedded database\n"
    })
  }
)
