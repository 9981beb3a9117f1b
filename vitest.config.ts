import { tmpdir } from "node:os"
import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"
import LongestFirst from "./test/support/LongestFirst.ts"

// The processes of all tests compile Effect only once.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "prompt-retrieval-compile-cache")

/** Tests that start no process of the project. Their files share the modules that they import. */
const pure = [
  "client/test/{Cache,Errors,Slots,Transport,cacheOutage,limits,paging,retryAfter,sharedReads,types}.test.ts",
  "client/test/pull/{Bundle,Identifiers}.test.ts",
  "test/adapters/inbound/http/**/*.test.ts",
  "test/adapters/inbound/cli/{ArchiveFile,PromptDiff,PromptDirectory,PromptPaths,PromptText}.test.ts",
  "test/adapters/outbound/{caching,memory}/**/*.test.ts",
  "test/application/**/*.test.ts",
  "test/bench/**/*.test.ts",
  "test/domain/**/*.test.ts",
  "test/oracle/{Checker,History}.test.ts",
  "test/runtime/telemetry/**/*.test.ts"
]

/**
 * Tests that restart and disturb programs, and wait for them most of the time. Their time limits are several seconds,
 * so two of these files run at the same time, but never beside tests that use the processor all the time.
 */
const waiting = [
  "test/deploy/composeScripts.test.ts",
  "test/embedding/outage.test.ts",
  "test/oracle/{generatedHistories,plantedFaults}.test.ts",
  "test/process/faults/{clients,cluster,pgbouncer,standby}.test.ts",
  "test/process/lifecycle/*.test.ts"
]

/** Tests that assert short durations, or memory. No other test runs at the same time. */
const sensitive = [
  "test/adapters/outbound/postgres/{Database,PostgresChangeFeed}.test.ts",
  "test/adapters/outbound/rate-limiter/RedisRateLimiter.test.ts",
  "test/api/{connections,memory}.test.ts",
  "test/domain/Resolution.test.ts",
  "test/process/faults/{database,failover,neighbors,outage,redis,replica,suspension}.test.ts",
  "test/process/{freshness,keyExpiry,leaks,mcpMemory,sharedLimits}.test.ts",
  "test/runtime/telemetry/ProcessMetrics.test.ts"
]

const exclude = (...patterns: ReadonlyArray<string>) => [...configDefaults.exclude, ...patterns]

/** Bundles the program that the tests start. */
const globalSetup = "test/support/bundleProgram.ts"

/** A test file that starts services needs about one core, and up to 40 connections of PostgreSQL's default of 100. */
const maxWorkers = 2

/**
 * How often a failed test that starts processes is repeated. In CI the machine may be suspended for longer than a test
 * allows; a second attempt tells such a pause from a defect. The report shows each repeated test as `(retry x1)`.
 */
const retry = process.env.CI === undefined ? 0 : 1

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    sequence: { sequencer: LongestFirst },
    // The projects run one after another.
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: pure,
          exclude: exclude(...sensitive),
          isolate: false,
          maxWorkers,
          sequence: { groupOrder: 1 }
        }
      },
      {
        extends: true,
        test: {
          name: "parallel",
          include: ["test/**/*.test.ts", "client/test/**/*.test.ts"],
          exclude: exclude(...pure, ...waiting, ...sensitive),
          globalSetup,
          maxWorkers,
          retry,
          sequence: { groupOrder: 2 }
        }
      },
      {
        extends: true,
        test: {
          name: "waiting",
          include: waiting,
          globalSetup,
          maxWorkers,
          retry,
          sequence: { groupOrder: 3 }
        }
      },
      {
        extends: true,
        test: {
          name: "sequential",
          include: sensitive,
          globalSetup,
          maxWorkers: 1,
          retry,
          sequence: { groupOrder: 4 }
        }
      }
    ]
  }
})
