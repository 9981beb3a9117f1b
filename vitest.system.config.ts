import { defineConfig } from "vitest/config"

/** The contract suites, which also run on the oldest supported PostgreSQL. */
const contracts = ["test/adapters/outbound/postgres/{contracts,schema/Functions,schema/Migrations}.test.ts"]

export default defineConfig({
  test: {
    include: ["test/system/**/*.test.ts", "client/test/system/**/*.test.ts", ...contracts],
    // These limits only end tests that hang. No test may depend on the speed of the machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    globalSetup: [
      "test/support/setup/requirePrograms.ts",
      "test/support/setup/startDebianServer.ts",
      "test/support/setup/startServer.ts",
      "test/support/setup/bundleProgram.ts"
    ],
    setupFiles: ["test/support/setup/expectNoLeaks.ts"],
    maxWorkers: 2
  }
})
