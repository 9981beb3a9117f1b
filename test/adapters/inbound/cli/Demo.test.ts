import { join } from "node:path"
import { expect, it } from "vitest"
import { describeProgram } from "../../../../src/adapters/inbound/cli/Demo.ts"
import { embedded, makeResources } from "../../../support/database.ts"
import { startService } from "../../../support/service.ts"

it.each([
  ["from sources", "/home/ada/checkout/src/main.ts", "npx node src/main.ts"],
  ["by its global command", "/usr/local/bin/prompt-retrieval", "prompt-retrieval"],
  ["by a project's command", "/home/ada/checkout/node_modules/.bin/prompt-retrieval", "npx prompt-retrieval"],
  ["as a project's file", "/app/node_modules/prompt-retrieval/dist/main.js", "npx prompt-retrieval"],
  ["as a built file", "/home/ada/checkout/dist/main.js", "node dist/main.js"]
])("describeProgram returns the command of a program that was started %s", (_, script, program) => {
  expect(describeProgram(script, "/home/ada/checkout")).toBe(program)
})

it("serve creates DATA_DIR, and prints how to issue a key once the database has a workspace", async () => {
  const resources = makeResources()
  try {
    const { DATA_DIR } = await resources.acquire(embedded.acquire)
    const env = { DATA_DIR: join(DATA_DIR!, "new") }
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
