import { spawnSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { beforeAll, describe, expect, it } from "vitest"
import { migrations, runMigrations } from "../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { endpointTargets } from "../../api/startApi.ts"
import { archive as makeArchive, prompt, sample } from "../../support/archives.ts"
import { send } from "../../support/clients/requests.ts"
import { connectTo } from "../../support/database/connection.ts"
import { connect, freshDatabase, freshName, onServer, toDatabaseUrl } from "../../support/database/server.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { listWarnings } from "../../support/services/logLines.ts"
import { recordImported } from "../../support/services/secrets.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { run } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const file = join(import.meta.dirname, "../../../deploy/roles.sql")

/** The names of the roles in this test. Roles belong to the whole server, so each test needs its own names. */
const roles = { owner: freshName(), service: freshName(), admin: freshName() }
type Role = keyof typeof roles

/** Runs deploy/roles.sql in a database as the superuser. */
const runFile = (database: string) => {
  const variables = Object.entries(roles).map(([name, value]) => `--set=${name}=${value}`)
  const args = ["--no-psqlrc", "--quiet", ...variables, `--file=${file}`, toDatabaseUrl(database)]
  const { status, stdout, stderr } = spawnSync("psql", args, { encoding: "utf8" })
  return { status, stdout, stderr }
}

describe("deploy/roles.sql", () => {
  const acquire = makeAcquire()
  const { archive, keys } = sample()
  const scratch = makeTestDirectory("roles-")
  let database: string

  const toEnv = (role: Role) => ({ DATABASE_URL: toDatabaseUrl(database, roles[role]) })
  const connectAs = (role: Role) => acquire(connectTo(toEnv(role)))
  const succeeded = { status: 0, stdout: "", stderr: "" }

  beforeAll(async () => {
    // The scope drops the roles after the database in which the roles have privileges.
    const dropRoles = Effect.forEach(Object.values(roles), (role) => onServer(`drop role if exists ${role}`))
    await acquire(Effect.addFinalizer(() => dropRoles))
    database = await acquire(freshDatabase)
    expect(runFile(database)).toEqual({
      ...succeeded,
      stdout: "The tables do not exist yet: run migrate as the owner, and then this file again.\n"
    })
    expect(await run(["migrate"], toEnv("owner"))).toMatchObject({ code: 0 })
    expect(runFile(database)).toEqual(succeeded)
    recordImported(archive)
    const imported = await run(["import", "-"], toEnv("admin"), JSON.stringify(archive))
    expect(imported).toMatchObject({ code: 0, stderr: "" })
  })

  it("with the role of the service, every endpoint returns 200, the service records the use of keys, and the log has no warning", async () => {
    const service = await startObservedService(toEnv("service"))
    try {
      const filtered = `/api/v1/prompts?tag=production&folder_id=${archive.folders[0]!.id}`
      for (const path of [filtered, ...Object.values(endpointTargets(archive.prompts[0]!.id))])
        expect(await send(service, path, `Bearer ${keys.active.plaintext}`), path).toMatchObject({
          status: 200
        })
      const { sql } = await connectAs("owner")
      const readUses = () => sql("select id from api_keys where last_used_at is not null")
      await expect.poll(readUses).toEqual([{ id: keys.active.stored.id }])
    } finally {
      await service.stop()
    }
    expect(listWarnings(service.output())).toEqual([])
  })

  it.each([
    [
      "service",
      [
        "update prompts set title = ''",
        "update api_keys set revoked_at = null",
        "delete from prompts",
        "insert into workspaces default values",
        "delete from prompt_retrieval_migrations",
        "select from audit_events",
        "select from imported_states",
        "create table other ()"
      ]
    ],
    [
      "admin",
      [
        "drop table prompts",
        "alter table prompts disable trigger all",
        "truncate prompts cascade",
        "create table other ()",
        "delete from prompt_retrieval_migrations"
      ]
    ]
  ] as const)("PostgreSQL rejects statements that the %s role does not need", async (role, statements) => {
    const { sql } = await connectAs(role)
    for (const statement of statements) await expect(sql(statement), statement).rejects.toThrow()
  })

  it("serve exits with 1 and prints which privilege its role lacks", async () => {
    const owner = await connectAs("owner")
    await owner.sql(`revoke select on api_keys from ${roles.service}`)
    expect(await run(["serve"], { ...toEnv("service"), PORT: "0", LOG_LEVEL: "warn" })).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "prompt-retrieval: PostgreSQL rejected a statement: permission denied for table api_keys; deploy/roles.sql grants the privileges of each role\n"
    })
    expect(runFile(database)).toEqual(succeeded)
  })

  it("the administrator's role has all privileges that the commands of an administrator need", async () => {
    const runAsAdmin = async (line: string, input = "") => {
      const { code, stdout, stderr } = await run(line.split(" "), toEnv("admin"), input)
      expect({ line, code, stderr }).toEqual({ line, code: 0, stderr: "" })
      return stdout
    }
    const { id } = archive.workspace
    const issued = await runAsAdmin(`keys issue --workspace ${id} --user new@example.com --json`)
    const files = `--workspace ${id} --format files --out ${join(scratch, "files")}`
    await runAsAdmin(`export ${files}`)
    writeFileSync(join(scratch, "files/prompts/added.md"), "---\ntitle: Added\n---\nAn added prompt\n")
    for (const line of [
      "migrate --status",
      "workspaces create --name New",
      `workspaces set ${id} --billing past_due`,
      "workspaces list",
      `keys revoke ${JSON.parse(issued).id}`,
      `keys list --workspace ${id}`,
      "users set new@example.com --must-reset on",
      `users list --workspace ${id}`,
      // With --json, the warnings about the sample are in the result and not on stderr.
      `import ${join(scratch, "files")} --workspace ${id} --json`,
      `export ${files} --update`
    ])
      await runAsAdmin(line)
    const large = makeArchive({ prompts: [prompt({ current_content: "x".repeat(200_000) })] })
    recordImported(large)
    await runAsAdmin("import - --dry-run", JSON.stringify(large))
    await runAsAdmin("import -", JSON.stringify(large))
    await runAsAdmin("import -", await runAsAdmin(`export --workspace ${id}`))
  }, 180_000)

  it("deploy/roles.sql also grants the roles their privileges on tables that later migrations create", async () => {
    const later = {
      name: "later",
      statements: ["create table later (id bigint generated always as identity primary key, note text)"]
    }
    const migrateAs = (role: Role) =>
      Effect.runPromise(
        Effect.result(
          runMigrations([...migrations, later]).pipe(Effect.provide(connect(database, roles[role])))
        )
      )
    const message =
      "the database's schema needs a migration, which the server rejected: permission denied for schema public; deploy/roles.sql grants the privileges of each role"
    for (const role of ["service", "admin"] as const)
      expect(await migrateAs(role)).toMatchObject({ _tag: "Failure", failure: { message } })
    expect(await migrateAs("owner")).toMatchObject({ _tag: "Success" })
    const admin = await connectAs("admin")
    await admin.sql("insert into later (note) values ('added')")
    const service = await connectAs("service")
    expect(await service.sql("select note from later")).toEqual([{ note: "added" }])
    await expect(service.sql("delete from later")).rejects.toThrow()
  })
})
