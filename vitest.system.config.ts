import { configDefaults, defineConfig } from "vitest/config"

/** Tests that assert short durations, or restart and disturb programs. They wait most of the time. */
const timed = ["test/system/faults/*.test.ts", "test/system/adapters/RedisRateLimiter.test.ts"]

/** The contract suites, which also run on the oldest supported PostgreSQL. */
const contracts = ["test/adapters/outbound/postgres/{contracts,schema/Migrations,schema/Schema}.test.ts"]

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 120_000,
    globalSetup: [
      "test/support/programs/requirePrograms.ts",
      "test/support/startDebianServer.ts",
      "test/support/startServer.ts",
      "test/support/bundleProgram.ts"
    ],
    projects: [
      {
        extends: true,
        test: {
          name: "system",
          include: ["test/system/**/*.test.ts", "client/test/system/**/*.test.ts", ...contracts],
          exclude: [...configDefaults.exclude, ...timed],
          maxWorkers: 2,
          sequence: { groupOrder: 1 }
        }
      },
      {
        extends: true,
        test: { name: "timed", include: timed, maxWorkers: 2, sequence: { groupOrder: 2 } }
      }
    ]
  }
})
