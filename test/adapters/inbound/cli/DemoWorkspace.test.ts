import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { expect, it } from "vitest"
import { embedded, makeResources } from "../../../support/database.ts"
import { run, sourceProgram, startService } from "../../../support/service.ts"
import { makeTestDatabase } from "../../../support/testDatabase.ts"

const database = makeTestDatabase()

/** Runs `use` with environment variables that select a data directory that does not exist yet. */
const withNewDirectory = async (use: (env: { readonly DATA_DIR: string }) => Promise<void>) => {
  const resources = makeResources()
  try {
    const { DATA_DIR } = await resources.acquire(embedded.acquire)
    await use({ DATA_DIR: join(DATA_DIR!, "new") })
  } finally {
    await resources.release()
  }
}

it.concurrent(
  "serve --demo creates a demo workspace in a new DATA_DIR, and prints how to issue a key if the directory already has a workspace",
  ({ expect }) =>
    withNewDirectory(async (env) => {
      const first = await startService(env, "/readyz", ["--demo"], sourceProgram)
      await expect.poll(() => first.output(), { timeout: 20_000 }).toContain("curl")
      await first.stop()
      const second = await startService(env, "/readyz", ["--demo"], sourceProgram)
      await expect
        .poll(() => second.output(), { timeout: 20_000 })
        .toMatch(
          /^To issue a key: npx node src\/main\.ts keys issue --workspace [0-9a-f-]{36} --user EMAIL$/m
        )
      await second.stop()
    }),
  60_000
)

it.concurrent(
  "serve without --demo creates no workspace and, until a workspace exists, warns with the command that creates a workspace",
  ({ expect }) =>
    withNewDirectory(async (env) => {
      const warning =
        "The database has no workspace, so every key is rejected; to create one: npx node src/main.ts workspaces create --name NAME --tier solo"
      const first = await startService(env, "/readyz", [], sourceProgram)
      await expect
        .poll(() => first.output(), { timeout: 20_000 })
        .toContain(`"level":"warn","msg":"${warning}"`)
      expect(first.output()).not.toContain("key_live_")
      expect((await run(["workspaces", "list", "--json"], env)).stdout).toBe("[]\n")
      const [, command] = / src\/main\.ts (.*)$/.exec(warning)!
      expect(await run(command!.split(" "), env)).toMatchObject({ code: 0 })
      await first.stop()
      const second = await startService(env, "/readyz", [], sourceProgram)
      // Waits for a warning that must not appear. A service usually logs the warning within a second.
      await setTimeout(2_000)
      await second.stop()
      expect(second.output()).not.toContain("workspace")
    }),
  60_000
)

it.concurrent("serve --demo creates no workspace on a PostgreSQL server", async () => {
  const service = await startService(database.env, "/readyz", ["--demo"], sourceProgram)
  // Waits for a workspace that must not appear. Creating the demo workspace usually takes less than a second.
  await setTimeout(2_000)
  expect(await service.stop()).toBe(0)
  expect(await database.sql("select from workspaces")).toEqual([])
}, 60_000)
