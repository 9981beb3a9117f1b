import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { afterAll, it } from "vitest"
import { embeddedEnv, makeResources } from "../../../support/database.ts"
import { sourceProgram, startService } from "../../../support/service.ts"
import { makeTestDatabase } from "../../../support/testDatabase.ts"

const database = makeTestDatabase()
const resources = makeResources()
afterAll(() => resources.release())

/** Makes environment variables that select a data directory that does not exist yet. */
const makeNewDirectory = async () => {
  const { DATA_DIR } = await resources.acquire(embeddedEnv)
  return { DATA_DIR: join(DATA_DIR!, "new") }
}

const start = (env: Readonly<Record<string, string>>, flags: ReadonlyArray<"--demo"> = []) =>
  startService(env, "/readyz", flags, sourceProgram)

it.concurrent("serve --demo creates a demo workspace only in a new DATA_DIR, and otherwise prints how to issue a key", async ({
  expect
}) => {
  const env = await makeNewDirectory()
  for (const output of [
    /^ *curl -H 'Authorization: Bearer key_live_/m,
    /^To issue a key: npx node src\/main\.ts keys issue --workspace [0-9a-f-]{36} --user EMAIL$/m
  ]) {
    const service = await start(env, ["--demo"])
    await expect.poll(() => service.output(), { timeout: 20_000 }).toMatch(output)
    await service.stop()
  }
}, 60_000)

it.concurrent("serve --demo creates no workspace on a PostgreSQL server", async ({ expect }) => {
  const service = await start(database.env, ["--demo"])
  // Waits for a workspace that must not appear. Creating the demo workspace usually takes less than a second.
  await setTimeout(2_000)
  expect(await service.stop()).toBe(0)
  expect(await database.sql("select from workspaces")).toEqual([])
}, 60_000)
