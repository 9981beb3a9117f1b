import { tmpdir } from "node:os"
import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"

// All test processes share one compile cache, so that Effect is compiled only once.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "prompt-retrieval-compile-cache")

/** Tests that need programs which npm does not install; `vitest.system.config.ts` runs them. */
const system = ["test/system/**", "client/test/system/**"]

/** Tests that assert short durations. They wait most of the time, so two of them disturb each other little. */
const timed = [
  "test/adapters/outbound/postgres/{Database,feed/PostgresChangeFeed}.test.ts",
  "test/api/transport/connections.test.ts",
  "test/api/waits/*.test.ts",
  "test/process/faults/*.test.ts",
  "test/process/keyExpiry.test.ts",
  "test/runtime/telemetry/ProcessMetrics.test.ts"
]

/** Tests that assert short durations while they use all processors. No other test runs at the same time. */
const alone = ["test/domain/Resolution.test.ts", "test/process/faults/neighbors.test.ts"]

const exclude = (...patterns: ReadonlyArray<string>) => [...configDefaults.exclude, ...system, ...patterns]

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 5_000 } },
    globalSetup: ["test/support/startServer.ts", "test/support/bundleProgram.ts"],
    // The test files of a worker share the modules that they import. Only test files may register hooks.
    isolate: false,
    // The projects run one after another.
    projects: [
      {
        extends: true,
        test: {
          name: "parallel",
          include: ["test/**/*.test.ts", "client/test/**/*.test.ts"],
          exclude: exclude(...timed, ...alone),
          // Some test files mostly wait for processes or compilers. Others use a whole core.
          maxWorkers: 3,
          sequence: { groupOrder: 1 }
        }
      },
      {
        extends: true,
        test: {
          name: "timed",
          include: timed,
          exclude: exclude(...alone),
          maxWorkers: 2,
          sequence: { groupOrder: 2 }
        }
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: alone,
          exclude: exclude(),
          maxWorkers: 1,
          sequence: { groupOrder: 3 }
        }
      }
    ]
  }
})
