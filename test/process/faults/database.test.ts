import * as Effect from "effect/Effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources, postgres } from "../../support/database.ts"
import { lockTables, promptTables } from "../../support/locks.ts"
import { startObserved } from "../../support/observed.ts"
import {
  ask,
  expectBystandersUnaffected,
  expectInvariant,
  fresh,
  type Outcome,
  untilAnswered
} from "../../support/outcomes.ts"
import { freshDatabase, freshName, onServer, urlOf } from "../../support/postgres.ts"
import { type Service, startService } from "../../support/service.ts"

const unlimited = { RATE_LIMIT_PER_KEY: "1000000", RATE_LIMIT_PER_PROCESS: "1000000" }

describe.skipIf(postgres.missing !== undefined)("a database that misbehaves", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const authorization = `Bearer ${keys.active.plaintext}`
  const prompts = "/api/v1/prompts"
  const versions = `/api/v1/prompts/${archive.prompts[0]!.id}/versions`
  let name: string
  let env: Record<string, string>
  let service: Service
  let release = async () => {}

  /** Each of another page, as the same read for many at once runs once. */
  const reads = (of: Service, count: number, path = prompts): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(
      Array.from({ length: count }, (_, index) => ask(of, `${fresh(path)}&page=${index + 1}`, authorization))
    )
  const onDatabase = async (text: string) => (await resources.acquire(connectTo(env))).sql(text)
  const lock = async (tables: string) => {
    release = await lockTables(env.DATABASE_URL!, tables)
  }
  const waitingForLocks = async () => {
    const [row] = await onDatabase(
      `select count(*)::int as n from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`
    )
    return (row as { readonly n: number }).n
  }

  beforeAll(async () => {
    name = await resources.acquire(freshDatabase)
    env = { DATABASE_URL: urlOf(name), ...unlimited }
    service = await startObserved(env)
    await (await resources.acquire(connectTo(env))).importArchive(archive)
  })
  afterEach(() => release())
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  /** Ends the service's backends on this database that a condition is true of. */
  const terminate = (condition = "true") =>
    Effect.runPromise(
      onServer(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = '${name}' and application_name = 'prompt-retrieval' and ${condition}`
      )
    )

  it("a backend terminated in mid-query: the read is tried once more, and its caller notices nothing", async () => {
    await lock(promptTables)
    const waiting = reads(service, 1)
    await expect.poll(waitingForLocks).toBe(1)
    await terminate("wait_event_type = 'Lock'")
    await expect.poll(waitingForLocks).toBe(1)
    await release()
    expect((await waiting).map(({ status }) => status)).toEqual([200])
  })

  it("all backends terminated in mid-query: data, or 503 to whoever met two of them", async () => {
    await lock(promptTables)
    const waiting = reads(service, 20)
    await expect.poll(waitingForLocks).toBeGreaterThan(1)
    await terminate()
    await release()
    expectInvariant(await waiting, ["data", "SERVICE_UNAVAILABLE"])
    expect(await untilAnswered(service, fresh(prompts), authorization)).toBeLessThan(500)
  })

  it("backends terminated again and again: data or 503, and data as soon as it ends", async () => {
    const outcomes: Array<Outcome> = []
    let running = true
    const client = async () => {
      while (running) outcomes.push(await ask(service, fresh(versions), authorization))
    }
    const clients = [client(), client(), client(), client()]
    for (let i = 0; i < 10; i++) await terminate()
    running = false
    await Promise.all(clients)
    expectInvariant(outcomes, ["data", "SERVICE_UNAVAILABLE"])
    expect(await untilAnswered(service, fresh(versions), authorization)).toBeLessThan(500)
  })

  it("the tables of prompts locked: 503 to who reads them, keys are looked up as ever", async () => {
    await lock(promptTables)
    const blocked = reads(service, 100)
    await expect.poll(waitingForLocks).toBeGreaterThan(1)
    const unknown = await ask(service, prompts, `Bearer key_live_${"0".repeat(64)}`)
    const revoked = await ask(service, prompts, `Bearer ${keys.revoked.plaintext}`)
    await expectBystandersUnaffected(service)
    expect([unknown.said, revoked.said]).toEqual(["UNAUTHORIZED", "UNAUTHORIZED"])
    expect(Math.max(unknown.duration, revoked.duration)).toBeLessThan(1_000)
    expectInvariant(await blocked, ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await untilAnswered(service, fresh(prompts), authorization)).toBeLessThan(500)
  })

  it("the table of keys locked: 503, and no unknown key is told from one that was not used of late", async () => {
    await lock("api_keys")
    const blocked = [
      ...(await Promise.all([
        ask(service, prompts, `Bearer ${keys.second.plaintext}`),
        ask(service, prompts, `Bearer key_live_${"0".repeat(64)}`)
      ]))
    ]
    await expectBystandersUnaffected(service)
    expectInvariant(blocked, ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await untilAnswered(service, fresh(prompts), authorization)).toBeLessThan(500)
  })

  it("a column dropped: 500 without a word of SQL; the rest answers; there again, so is all", async () => {
    const before = await ask(service, fresh(prompts), authorization)
    await onDatabase("create table kept as select id, target_model from prompts")
    await onDatabase("alter table prompts drop column target_model")
    const broken = await ask(service, fresh(prompts), authorization)
    expect({ status: broken.status, body: broken.body }).toEqual({
      status: 500,
      body: '{"error":{"code":"INTERNAL_ERROR","message":"Internal error"}}'
    })
    expect((await ask(service, fresh(versions), authorization)).status).toBe(200)
    await expectBystandersUnaffected(service)
    await onDatabase("alter table prompts add column target_model text not null default ''")
    await onDatabase(
      "update prompts set target_model = kept.target_model from kept where kept.id = prompts.id"
    )
    await onDatabase("drop table kept")
    expect(await untilAnswered(service, fresh(prompts), authorization)).toBeLessThan(500)
    expect(await ask(service, fresh(prompts), authorization)).toMatchObject({
      status: 200,
      body: before.body
    })
  })

  it("a column of another type under a running service: what was prepared before is prepared anew", async () => {
    expect((await reads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
    await onDatabase("alter table prompts alter column title type varchar(1000)")
    await untilAnswered(service, fresh(prompts), authorization)
    expect((await reads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })

  it("few connections to be had, all of them blocked: 503, and full recovery", async () => {
    const role = await resources.acquire(
      Effect.acquireRelease(
        Effect.tap(Effect.sync(freshName), (role) =>
          onServer(`create role ${role} login connection limit 5`)
        ),
        (role) => onServer(`drop role ${role}`)
      )
    )
    const database = await resources.acquire(freshDatabase)
    await Effect.runPromise(onServer(`alter database ${database} owner to ${role}`))
    const scarce = await startService({ DATABASE_URL: urlOf(database, role), ...unlimited })
    try {
      const admin = await resources.acquire(connectTo({ DATABASE_URL: urlOf(database) }))
      const { archive, keys } = sample()
      await admin.importArchive(archive)
      const authorization = `Bearer ${keys.active.plaintext}`
      const many = (count: number) =>
        Promise.all(Array.from({ length: count }, () => ask(scarce, fresh(prompts), authorization)))
      await untilAnswered(scarce, fresh(prompts), authorization)
      release = await lockTables(urlOf(database), promptTables)
      const blocked = many(50)
      await expectBystandersUnaffected(scarce)
      expectInvariant(await blocked, ["SERVICE_UNAVAILABLE"])
      await release()
      expect(await untilAnswered(scarce, fresh(prompts), authorization)).toBeLessThan(2_000)
      expectInvariant(await many(50), ["data", "SERVICE_UNAVAILABLE"])
      expect(await untilAnswered(scarce, fresh(prompts), authorization)).toBeLessThan(500)
    } finally {
      await scarce.stop()
    }
  })

  it("a database that only reads: reads are answered, last_used_at is not kept, and one line says so", async () => {
    const database = await resources.acquire(freshDatabase)
    const own = { DATABASE_URL: urlOf(database), ...unlimited }
    const first = await startService(own)
    const { archive, keys } = sample()
    await (await resources.acquire(connectTo(own))).importArchive(archive)
    expect(await first.stop()).toBe(0)
    await Effect.runPromise(onServer(`alter database ${database} set default_transaction_read_only = on`))
    const replica = await startService(own)
    try {
      for (const key of [keys.active, keys.second]) {
        expect(await ask(replica, prompts, `Bearer ${key.plaintext}`)).toMatchObject({ status: 200 })
        await expect
          .poll(() => replica.output(), { timeout: 5_000 })
          .toContain("Could not persist last_used_at: cannot execute UPDATE in a read-only transaction")
      }
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      expect(replica.output().split("Could not persist last_used_at").length - 1).toBe(1)
      const { sql } = await resources.acquire(connectTo(own))
      expect(await sql("select count(*)::int as used from api_keys where last_used_at is not null")).toEqual([
        { used: 0 }
      ])
      await expectBystandersUnaffected(replica)
    } finally {
      expect(await replica.stop()).toBe(0)
    }
  })
})
