import { tmpdir } from "node:os"
import { join } from "node:path"
import { configDefaults, defineConfig } from "vitest/config"

// All test processes share one compile cache, so that Effect is compiled only once.
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "prompt-retrieval-compile-cache")

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "client/test/**/*.test.ts"],
    // `vitest.system.config.ts` runs these tests, which need programs that npm does not install.
    exclude: [...configDefaults.exclude, "test/system/**", "client/test/system/**"],
    // These limits only end tests that hang. No test may depend on the speed of the machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    globalSetup: ["test/support/setup/startServer.ts", "test/support/setup/bundleProgram.ts"],
    setupFiles: ["test/support/setup/expectNoLeaks.ts"],
    // The test files of a worker share the modules that they import. Only test files and setup files may register hooks.
    isolate: false,
    // Three workers share the cores, because some test files mostly wait, but other test files use a whole core.
    maxWorkers: 3
  }
})
