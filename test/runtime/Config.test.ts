import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { expect } from "vitest"
import { InvalidConfig, readConfig } from "../../src/runtime/Config.ts"
import { run, startService } from "../support/service.ts"

const unreachable = "postgres://postgres@127.0.0.1:9/none"

const readFrom = (env: Record<string, string>) =>
  Effect.provideService(readConfig, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const defaults = {
  databaseUrl: undefined,
  dataDir: ".data",
  redisUrl: undefined,
  host: "127.0.0.1",
  port: 3000,
  rateLimits: { perKey: 100, perProcess: 500 },
  metricsPort: undefined,
  otlpEndpoint: undefined,
  shutdownGrace: 0,
  logLevel: "Info",
  logFormat: process.stderr.isTTY ? "pretty" : "json"
} as const

it.effect("readConfig returns the defaults for variables that are unset or empty", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* readFrom({}), defaults)
    assert.deepStrictEqual(yield* readFrom({ DATABASE_URL: "", PORT: "", LOG_FORMAT: "" }), defaults)
    // Kubernetes sets such variables for services that are called port or host.
    assert.deepStrictEqual(yield* readFrom({ PORT_80_TCP: "tcp://10.0.0.1:80", HOST_0: "a" }), defaults)
  })
)

it.effect("readConfig returns the value of every variable", () =>
  Effect.gen(function* () {
    const databaseUrl = "postgres://ada:secret@db:5432/prompts"
    const config = yield* readFrom({
      DATABASE_URL: databaseUrl,
      DATA_DIR: "/data",
      REDIS_URL: "rediss://cache/1",
      HOST: "::1",
      PORT: "0",
      RATE_LIMIT_PER_KEY: "1",
      RATE_LIMIT_PER_PROCESS: "2",
      METRICS_PORT: "9464",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      SHUTDOWN_GRACE: "5 seconds",
      LOG_LEVEL: "Debug",
      LOG_FORMAT: "pretty"
    })
    assert.deepStrictEqual(
      {
        ...config,
        databaseUrl: Redacted.value(config.databaseUrl!),
        redisUrl: Redacted.value(config.redisUrl!)
      },
      {
        databaseUrl,
        dataDir: "/data",
        redisUrl: "rediss://cache/1",
        host: "::1",
        port: 0,
        rateLimits: { perKey: 1, perProcess: 2 },
        metricsPort: 9464,
        otlpEndpoint: "http://collector:4318",
        shutdownGrace: 5_000,
        logLevel: "Debug",
        logFormat: "pretty"
      }
    )
  })
)

it.effect.each([
  [{ DATABASE_URL: "s3cret" }, "DATABASE_URL must be a URL like postgres://user:password@host:5432/database"],
  [{ REDIS_URL: "redis://s3cret/name" }, "REDIS_URL must be a URL like redis://host:6379"],
  [{ METRICS_PORT: "70000" }, "METRICS_PORT must be a port, 0 to 65535"],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: "s3cret" },
    "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL like http://collector:4318"
  ],
  [{ LOG_LEVEL: "s3cret", PORT: "s3cret" }, "PORT must be a port, 0 to 65535"]
] as const)("readConfig fails for the first invalid variable without its value: %o", ([env, message]) =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* Effect.flip(readFrom(env)), new InvalidConfig({ message }))
  })
)

it.each(["597 hours", "30 days", "2147483648 millis", "100000 weeks"])(
  "serve exits with 1 for SHUTDOWN_GRACE=%s, which is longer than any timer",
  async (grace) => {
    expect(await run(["serve"], { DATABASE_URL: unreachable, PORT: "0", SHUTDOWN_GRACE: grace })).toEqual({
      code: 1,
      stdout: "",
      stderr: "prompt-retrieval: SHUTDOWN_GRACE must be at most 596 hours\n"
    })
  }
)

it("SHUTDOWN_GRACE=596 hours keeps the service accepting requests after SIGTERM", async () => {
  const env = { DATABASE_URL: unreachable, SHUTDOWN_GRACE: "596 hours" }
  const service = await startService(env, "/healthz")
  const exited = once(service.process, "exit")
  service.process.kill("SIGTERM")
  await setTimeout(1_000)
  expect(service.process.exitCode).toBeNull()
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200)
  service.process.kill("SIGTERM")
  expect(await exited).toEqual([143, null])
  expect(service.output()).not.toContain("TimeoutOverflowWarning")
}, 60_000)
