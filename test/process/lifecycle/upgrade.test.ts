import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { migrations, runMigrations } from "../../../src/adapters/outbound/postgres/Migrations.ts"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import { recordImported } from "../../support/leaks.ts"
import { type Load, startLoad } from "../../support/load.ts"
import { connect, freshDatabase, toDatabaseUrl } from "../../support/postgres.ts"
import { previousProgram } from "../../support/previousProgram.ts"
import { run, type Service, startService } from "../../support/service.ts"

/** A migration after the last one of this program: it adds to tables that requests read, and a table. */
const expand = {
  name: "expand",
  oldestProgram: Math.max(...migrations.map(({ oldestProgram }) => oldestProgram)),
  statements: [
    "alter table api_keys add column upgrade_test timestamptz(3)",
    "alter table prompts add column upgrade_test text not null default 'new'",
    "create table upgrade_test (id bigint generated always as identity primary key)"
  ]
}

/** A migration after `expand` that only a program that knows `expand` may use. */
const contract = {
  name: "contract",
  oldestProgram: migrations.length + 1,
  statements: ["alter table api_keys drop column upgrade_test"]
}

/** An instance with its load. */
interface Instance {
  readonly service: Service
  readonly load: Load
}

describe("a rolling update from the previous version", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const headers = { authorization: `Bearer ${keys.active.plaintext}` }
  const item = `/api/v1/prompts/${archive.prompts[0]!.id}`
  const paths = ["/api/v1/prompts", item, `${item}/resolved`, `${item}/versions`, `${item}/versions/1`]
  let previous: string
  let database: string
  let env: Record<string, string>
  let sql: Awaited<ReturnType<typeof connectSql>>
  const running = new Set<Instance>()

  const connectSql = async () => (await resources.acquire(connectTo(env))).sql

  beforeAll(async () => {
    previous = await resources.acquire(previousProgram)
    database = await resources.acquire(freshDatabase)
    env = {
      DATABASE_URL: toDatabaseUrl(database),
      RATE_LIMIT_PER_KEY: "1000000",
      RATE_LIMIT_PER_PROCESS: "1000000"
    }
    recordImported(archive)
    // The previous version knows no `expires_at`.
    const api_keys = archive.api_keys.map(({ expires_at: _, ...key }) => key)
    const previousArchive = JSON.stringify({ ...archive, api_keys })
    expect(await run(["import", "-"], env, previousArchive, previous)).toMatchObject({ code: 0 })
    sql = await connectSql()
  })
  afterAll(async () => {
    for (const { service, load } of running) {
      await load.stop()
      await service.stop()
    }
    await resources.release()
  })

  const migrateWith = (...later: ReadonlyArray<typeof expand>) =>
    Effect.runPromise(runMigrations([...migrations, ...later]).pipe(Effect.provide(connect(database))))

  /** Starts an instance and its load. */
  const start = async (program?: string): Promise<Instance> => {
    const service = await startService(env, "/readyz", [], program)
    const load = startLoad(
      paths.map((path) => service.url + path),
      headers,
      4
    )
    const instance = { service, load }
    running.add(instance)
    return instance
  }

  /** Ends the load of an instance, then the instance, and expects that every request succeeded. */
  const stop = async (instance: Instance): Promise<void> => {
    const { 200: succeeded, ...failed } = await instance.load.stop()
    running.delete(instance)
    expect({ code: await instance.service.stop(), failed }).toEqual({ code: 0, failed: {} })
    expect(succeeded).toBeGreaterThan(100)
  }

  /** Edits a prompt all the time, so that responses are read from the database again and again. */
  const startEdits = () => {
    let round = 0
    let isEditing = true
    const edits = (async () => {
      while (isEditing) {
        await sql("update prompts set title = $1 where id = $2", [`Round ${++round}`, archive.prompts[0]!.id])
        await setTimeout(20)
      }
    })()
    return {
      round: () => round,
      stop: async () => {
        isEditing = false
        await edits
      }
    }
  }

  it("no request fails and edits stay visible while the schema is migrated, instances are replaced, and the previous version returns", async () => {
    const edits = startEdits()
    /** Waits until every running instance has responded to more requests and shows an edit made from now on. */
    const expectWorking = async () => {
      const round = edits.round() + 1
      for (const { service, load } of running) {
        const readRound = async () => {
          const response = await fetch(service.url + item, { headers })
          const { data } = (await response.json()) as { readonly data: { readonly title: string } }
          return Number(data.title.replace("Round ", ""))
        }
        const target = load.count() + 100
        await expect.poll(readRound, { timeout: 10_000 }).toBeGreaterThanOrEqual(round)
        await expect.poll(() => load.count(), { timeout: 15_000 }).toBeGreaterThan(target)
      }
    }

    try {
      const old = await start(previous)
      await expectWorking()
      expect(await run(["migrate"], env)).toMatchObject({ code: 0, stderr: "" })
      await migrateWith(expand)
      await expectWorking()

      const current = await start()
      await expectWorking()
      await stop(old)
      await expectWorking()

      const returned = await start(previous)
      await expectWorking()
      await stop(current)
      await expectWorking()
      for (const args of [["workspaces", "list"], ["migrate"]]) {
        expect(await run(args, env, "", previous)).toMatchObject({ code: 0, stderr: "" })
      }

      await stop(returned)
    } finally {
      await edits.stop()
    }
  }, 120_000)

  it("after a migration that removes what they use, earlier programs do not run, and say that they need an upgrade", async () => {
    await migrateWith(expand, contract)
    for (const program of [previous, undefined]) {
      const { code, stderr } = await run(["migrate"], env, "", program)
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          /^prompt-retrieval: the database's schema is version \d+ .*: upgrade the program\n$/
        )
      })
    }
  })
})
