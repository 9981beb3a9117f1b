import { expect, it } from "vitest"
import { migrations } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { postgresEnv } from "../../support/database/connection.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { makeFailure, makeSuccess } from "../../support/services/commandLine.ts"
import { run } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const acquire = makeAcquire()
const all = migrations.map(({ name }, index) => ({ id: index + 1, name }))
const version = migrations.length

it("migrate prints the migrations that it ran, and migrate --status exits with 1 while migrations are pending", async () => {
  const env = await acquire(postgresEnv)
  const migrate = (...flags: ReadonlyArray<string>) => run(["migrate", ...flags], env)
  const message = `the schema is not up to date (pending: ${version}); run 'prompt-retrieval migrate'`
  const list = (prefix: string) => all.map(({ id, name }) => `${prefix}${id}, ${name}`).join("\n")
  expect(await migrate("--status")).toEqual({
    ...makeFailure(message),
    stdout: `Schema version: 0\nPending migrations:\n${list("  ")}\n`
  })
  expect(await migrate("--status", "--json")).toEqual({
    code: 1,
    stdout: `${JSON.stringify({ version: 0, pending: all })}\n`,
    stderr: `${JSON.stringify({ error: { message, exit_code: 1 } })}\n`
  })
  expect(await migrate()).toEqual(makeSuccess(list("Ran ")))
  expect(await migrate()).toEqual(makeSuccess(`The schema is up to date (version ${version})`))
  expect(await migrate("--status")).toEqual(
    makeSuccess(`Schema version: ${version}\nPending migrations: none`)
  )
  expect(await migrate("--status", "--json")).toEqual(makeSuccess(JSON.stringify({ version, pending: [] })))
  const ran = await run(["migrate", "--json"], await acquire(postgresEnv))
  expect(ran).toEqual(makeSuccess(JSON.stringify({ migrated: true, version, ran: all })))
})

it("on a new database, import and workspaces create run the migrations, but import --dry-run of an archive or of a directory runs none", async () => {
  const env = await acquire(postgresEnv)
  const archive = "src/demo/workspace.json"
  const directory = ["examples/prompts-as-files", "--workspace", "00000000-0000-4000-8000-000000000000"]
  const message = `the database's schema is version 0 and this program needs ${version}: run migrate`
  for (const input of [[archive], directory])
    expect(await run(["import", ...input, "--dry-run"], env)).toEqual(makeFailure(message))
  for (const args of [
    ["import", archive],
    ["workspaces", "create", "--name", "Acme"]
  ])
    expect(await run(args, await acquire(postgresEnv))).toMatchObject({ code: 0, stderr: "" })
})

it("a command on a new embedded database exits with 1, and says that DATABASE_URL is not set and where the database is", async () => {
  const env = { DATA_DIR: makeTestDirectory("data-") }
  const { code, stderr } = await run(["workspaces", "list"], env)
  expect(code).toBe(1)
  expect(stderr).toContain(
    `run migrate; DATABASE_URL is not set, so this is the embedded database in ${env.DATA_DIR}`
  )
})

it("a command exits with 1 and prints once why the database is unavailable", async () => {
  const reason = "the database cannot be reached: connect ECONNREFUSED 127.0.0.1:9"
  const env = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none" }
  expect(await run(["workspaces", "list"], env)).toEqual(makeFailure(reason))
})
