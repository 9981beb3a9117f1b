import { expect, it } from "vitest"
import { describeProgram } from "../../../src/adapters/cli/Demo.ts"
import { embedded, makeResources } from "../../support/database.ts"
import { startService } from "../../support/service.ts"

it.each([
  ["from sources", "/home/ada/checkout/src/main.ts", "npx node src/main.ts"],
  ["by its global command", "/usr/local/bin/prompt-retrieval", "prompt-retrieval"],
  ["by a project's command", "/home/ada/checkout/node_modules/.bin/prompt-retrieval", "npx prompt-retrieval"],
  ["as a project's file", "/app/node_modules/prompt-retrieval/dist/main.js", "npx prompt-retrieval"],
  ["as a built file", "/home/ada/checkout/dist/main.js", "node dist/main.js"]
])("names the program that was started %s", (_, script, program) => {
  expect(describeProgram(script, "/home/ada/checkout")).toBe(program)
})

it("prints how to issue a key when a checkout's database holds a workspace", async () => {
  const resources = makeResources()
  try {
    const env = await resources.acquire(embedded.acquire)
    const first = await startService(env)
    await expect.poll(() => first.output(), { timeout: 20_000 }).toContain("curl")
    await first.stop()
    const second = await startService(env)
    await expect
      .poll(() => second.output(), { timeout: 20_000 })
      .toMatch(/^To issue a key: npx node src\/main\.ts keys issue --workspace [0-9a-f-]{36} --user EMAIL$/m)
    await second.stop()
  } finally {
    await resources.release()
  }
}, 60_000)
