import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources } from "../support/database.ts"
import { lockTables, promptTables } from "../support/locks.ts"
import { ask, fresh } from "../support/outcomes.ts"
import { freePort } from "../support/ports.ts"
import { freshDatabase, noPostgres, urlOf } from "../support/postgres.ts"
import { noProgram, runProgram } from "../support/programs.ts"
import { type Service, startService } from "../support/service.ts"

const missing = noPostgres ?? noProgram("pgbouncer", "--version")

const workDirectory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "pgbouncer-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

/** The address of a database behind a PgBouncer with its default settings, apart from the pool mode. */
const throughPgBouncer = (database: string, mode: "session" | "transaction") =>
  Effect.gen(function* () {
    const home = yield* workDirectory
    const port = yield* Effect.promise(freePort)
    const target = new URL(urlOf(database))
    const config = join(home, "pgbouncer.ini")
    // PgBouncer refuses to run as root, so the user that it runs as must be able to read its files.
    const isRoot = process.getuid!() === 0
    writeFileSync(join(home, "users.txt"), `"${target.username}" "${target.password}"\n`)
    writeFileSync(
      config,
      `[databases]
${database} = host=${target.hostname} port=${target.port || 5432}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(home, "users.txt")}
pool_mode = ${mode}
`
    )
    if (isRoot) chmodSync(home, 0o755)
    yield* runProgram("pgbouncer", [...(isRoot ? ["-u", "nobody"] : []), config], port)
    target.host = `127.0.0.1:${port}`
    return target.href
  })

describe.skipIf(missing !== undefined).each(["session", "transaction"] as const)(
  "PgBouncer in %s mode with its default settings",
  (mode) => {
    const resources = makeResources()
    const { archive, keys } = sample()
    const authorization = `Bearer ${keys.active.plaintext}`
    let direct: Record<string, string>
    let service: Service

    beforeAll(async () => {
      const database = await resources.acquire(freshDatabase)
      direct = { DATABASE_URL: urlOf(database) }
      const url = await resources.acquire(throughPgBouncer(database, mode))
      service = await startService({
        DATABASE_URL: url,
        RATE_LIMIT_PER_KEY: "1000000",
        RATE_LIMIT_PER_PROCESS: "1000000"
      })
      await (await resources.acquire(connectTo(direct))).importArchive(archive)
    })
    afterAll(async () => {
      expect(await service?.stop()).toBe(0)
      await resources.release()
    })

    it("the service migrates the database and responds to every read", async () => {
      const paths = archive.prompts.flatMap(({ id, versions }) => [
        `/api/v1/prompts/${id}`,
        `/api/v1/prompts/${id}/resolved`,
        `/api/v1/prompts/${id}/versions`,
        ...versions.map(({ version_number }) => `/api/v1/prompts/${id}/versions/${version_number}`)
      ])
      for (let round = 0; round < 5; round++) {
        const outcomes = await Promise.all(
          [...paths, "/api/v1/prompts"].map((path) => ask(service, fresh(path), authorization))
        )
        expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200]))
      }
    })

    if (mode === "session")
      it("a read behind a lock ends at the statement timeout", async () => {
        const release = await lockTables(direct.DATABASE_URL!, promptTables)
        try {
          const { status, duration } = await ask(service, fresh("/api/v1/prompts"), authorization)
          expect(status).toBe(503)
          expect(duration).toBeLessThan(4_500)
        } finally {
          await release()
        }
        expect(service.output()).toContain("A read exceeded the 3 s statement timeout; responded 503")
        expect(service.output()).not.toContain("PostgreSQL is unavailable")
      })

    it(
      mode === "session"
        ? "changes are heard of, so responses are cached"
        : "changes are not heard of, so one line says that nothing is cached",
      async () => {
        const line = "Changes can't be heard of, so nothing is cached"
        if (mode === "session") expect(service.output()).not.toContain(line)
        else await expect.poll(() => service.output().split(line).length - 1, { timeout: 8_000 }).toBe(1)
        const { sql } = await resources.acquire(connectTo(direct))
        const { id } = archive.prompts[0]!
        const path = `/api/v1/prompts/${id}`
        await ask(service, path, authorization)
        await sql("update prompts set title = 'Changed' where id = $1", [id])
        await expect
          .poll(async () => (await ask(service, path, authorization)).body, { timeout: 2_000 })
          .toContain('"title":"Changed"')
      }
    )
  }
)
