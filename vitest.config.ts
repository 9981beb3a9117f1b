import { tmpdir } from "node:os"
import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"

// The processes of all tests compile Effect only once.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "prompt-retrieval-compile-cache")

/** Tests that need programs which npm does not install; `vitest.system.config.ts` runs them. */
const system = ["test/system/**", "client/test/system/**"]

/** Tests that start no process of the project. Their files share the modules that they import. */
const pure = [
  "client/test/{Cache,Errors,Slots,Transport,cacheOutage,limits,paging,retryAfter,sharedReads,types}.test.ts",
  "client/test/pull/{Bundle,Identifiers}.test.ts",
  "test/adapters/inbound/http/**/*.test.ts",
  "test/adapters/inbound/cli/{archive,files,output}/*.test.ts",
  "test/adapters/outbound/{caching,memory}/**/*.test.ts",
  "test/application/**/*.test.ts",
  "test/domain/**/*.test.ts",
  "test/runtime/telemetry/**/*.test.ts"
]

/** Tests that assert short durations. They wait most of the time, so two of them disturb each other little. */
const timed = [
  "test/adapters/outbound/postgres/{Database,feed/PostgresChangeFeed}.test.ts",
  "test/api/transport/connections.test.ts",
  "test/process/faults/*.test.ts",
  "test/process/{freshness,keyExpiry}.test.ts",
  "test/runtime/telemetry/ProcessMetrics.test.ts"
]

/** Tests that assert short durations while they use all processors. No other test runs at the same time. */
const alone = ["test/domain/Resolution.test.ts", "test/process/faults/neighbors.test.ts"]

const exclude = (...patterns: ReadonlyArray<string>) => [...configDefaults.exclude, ...system, ...patterns]

/** A test file that starts services needs about one core, and up to 40 connections of PostgreSQL's default of 100. */
const maxWorkers = 2

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    globalSetup: ["test/support/startServer.ts", "test/support/bundleProgram.ts"],
    // The projects run one after another.
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: pure,
          exclude: exclude(...timed, ...alone),
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
          exclude: exclude(...pure, ...timed, ...alone),
          maxWorkers,
          sequence: { groupOrder: 2 }
        }
      },
      {
        extends: true,
        test: {
          name: "timed",
          include: timed,
          exclude: exclude(...alone),
          maxWorkers,
          sequence: { groupOrder: 3 }
        }
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          exclude: exclude(),
          maxWorkers: 1,
          sequence: { groupOrder: 4 }
        }
      }
    ]
  }
})
