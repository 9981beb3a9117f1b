import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { connectTo, makeResources } from "../support/database.ts"
import { freePort } from "../support/ports.ts"
import { freshDatabase, freshName, noPostgres, onServer, toDatabaseUrl } from "../support/postgres.ts"
import { run, startService } from "../support/service.ts"
import { readCodeBlocks } from "./markdown.ts"

const document = "docs/deployment.md"

/** Returns the statement of the document that starts with these words. */
const findStatement = (start: string): string => {
  const found = readCodeBlocks(document)
    .map(({ code }) => new RegExp(`${start}[^;'\n]*`).exec(code)?.[0])
    .find((statement) => statement !== undefined)
  if (found === undefined) throw new Error(`${document} has no statement ${start}`)
  return found
}

describe.skipIf(noPostgres !== undefined)("docs/deployment.md, Prepare the database", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  let owner: Awaited<ReturnType<typeof connect>>
  let env: Readonly<Record<string, string>>

  const connect = (url: string) => resources.acquire(connectTo({ DATABASE_URL: url }))
  const role = Effect.acquireRelease(
    Effect.tap(Effect.sync(freshName), (name) => onServer(`create role ${name} login`)),
    (name) => onServer(`drop role ${name}`)
  )
  const toService = (statement: string, role: string) =>
    statement.replace("FOR ROLE prompts_owner ", "").replace("prompts_service", role)

  beforeAll(async () => {
    const service = await resources.acquire(role)
    const database = await resources.acquire(freshDatabase)
    env = { DATABASE_URL: toDatabaseUrl(database, service), PORT: String(await freePort()) }
    owner = await connect(toDatabaseUrl(database))
    await owner.sql(toService(findStatement("ALTER DEFAULT PRIVILEGES"), service))
    expect(await run(["serve"], env)).toMatchObject({ code: 1, stderr: expect.stringContaining("migration") })
    expect(await run(["migrate"], { DATABASE_URL: toDatabaseUrl(database) })).toMatchObject({ code: 0 })
    await owner.sql(toService(findStatement("GRANT UPDATE"), service))
    await owner.importArchive(archive)
  })
  afterAll(() => resources.release())

  it("a role with these privileges serves requests and stores when keys are used", async () => {
    const service = await startService(env)
    try {
      const headers = { authorization: `Bearer ${keys.active.plaintext}` }
      const response = await fetch(`${service.url}/api/v1/prompts?tag=production`, { headers })
      expect(response.status).toBe(200)
      await response.arrayBuffer()
      const readUses = () => owner.sql("select id from api_keys where last_used_at is not null")
      await expect.poll(readUses, { timeout: 5_000 }).toEqual([{ id: keys.active.stored.id }])
    } finally {
      await service.stop()
    }
  })

  it("a role with these privileges cannot issue keys or change prompts", async () => {
    const service = await connect(env.DATABASE_URL!)
    for (const statement of [
      "update prompts set title = ''",
      "update api_keys set revoked_at = null",
      "delete from prompts",
      "insert into workspaces default values"
    ])
      await expect(service.sql(statement), statement).rejects.toThrow()
  })
})
