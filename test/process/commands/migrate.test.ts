import { beforeAll, describe, expect, it } from "vitest"
import { migrations } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { embeddedEnv, postgresEnv } from "../../support/database.ts"
import { makeAcquire } from "../../support/testDatabase.ts"
import { run } from "../../support/service.ts"

describe("the command migrate", { timeout: 120_000 }, () => {
  const acquire = makeAcquire()
  const all = migrations.map(({ name }, index) => ({ id: index + 1, name }))
  const version = migrations.length
  let env: Record<string, string>

  beforeAll(async () => {
    env = await acquire(postgresEnv)
  })

  const runMigrate = async (flags: ReadonlyArray<string>, code = 0, stderr = "") => {
    const result = await run(["migrate", ...flags], env)
    expect(result).toMatchObject({ code, stderr })
    return result.stdout
  }

  it("migrate prints the migrations that it ran, and migrate --status exits with 1 while migrations are pending", async () => {
    const message = `the schema is not up to date (pending: ${version}); run 'prompt-retrieval migrate'`
    const list = (prefix: string) => all.map(({ id, name }) => `${prefix}${id}, ${name}\n`).join("")
    expect(await runMigrate(["--status"], 1, `prompt-retrieval: ${message}\n`)).toBe(
      `Schema version: 0\nPending migrations:\n${list("  ")}`
    )
    const error = `${JSON.stringify({ error: { message, exit_code: 1 } })}\n`
    const pending = await runMigrate(["--status", "--json"], 1, error)
    expect(JSON.parse(pending)).toEqual({ version: 0, pending: all })

    expect(await runMigrate([])).toBe(list("Ran "))
    expect(await runMigrate([])).toBe(`The schema is up to date (version ${version})\n`)
    const empty = await run(["migrate", "--json"], await acquire(postgresEnv))
    expect(JSON.parse(empty.stdout)).toEqual({ migrated: true, version, ran: all })

    expect(await runMigrate(["--status"])).toBe(`Schema version: ${version}\nPending migrations: none\n`)
    expect(JSON.parse(await runMigrate(["--status", "--json"]))).toEqual({ version, pending: [] })
  })

  it("import --dry-run of an archive or of a directory runs no migration", async () => {
    const emptyEnv = await acquire(postgresEnv)
    const archive = "src/demo/workspace.json"
    const directory = ["examples/prompts-as-files", "--workspace", "00000000-0000-4000-8000-000000000000"]
    for (const input of [[archive], directory])
      expect(await run(["import", ...input, "--dry-run"], emptyEnv)).toEqual({
        code: 1,
        stdout: "",
        stderr: `prompt-retrieval: the database's schema is version 0 and this program needs ${version}: run migrate\n`
      })
    expect(await run(["import", archive], emptyEnv)).toMatchObject({ code: 0, stderr: "" })
  })

  it("workspaces create on a new database runs the migrations", async () => {
    const emptyEnv = await acquire(postgresEnv)
    const created = await run(["workspaces", "create", "--name", "Acme"], emptyEnv)
    expect(created).toMatchObject({ code: 0, stderr: "" })
  })

  it("a command on a new embedded database says that DATABASE_URL is not set, and where the database is", async () => {
    const env = await acquire(embeddedEnv)
    const { code, stderr } = await run(["workspaces", "list"], env)
    expect(code).toBe(1)
    expect(stderr).toContain(
      `run migrate; DATABASE_URL is not set, so this is the embedded database in ${env.DATA_DIR}`
    )
  })
})
