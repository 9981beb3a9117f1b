import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import { lockTables, promptTables } from "../../support/database/locks.ts"
import { freshDatabase, freshName, onServer, toDatabaseUrl } from "../../support/postgres.ts"
import {
  expectBystandersUnaffected,
  expectCodesInTime,
  type Outcome,
  send,
  uncachedPath,
  waitUntilOk
} from "../../support/clients/requests.ts"
import { type Service, startService } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"

const unlimited = { RATE_LIMIT_PER_KEY: "1000000", RATE_LIMIT_PER_PROCESS: "1000000" }

describe("a database that fails or blocks", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const free = sample({ tier: "free" })
  const authorization = `Bearer ${keys.active.plaintext}`
  const prompts = "/api/v1/prompts"
  const versions = `/api/v1/prompts/${archive.prompts[0]!.id}/versions`
  const resolved = `/api/v1/prompts/${free.archive.prompts[0]!.id}/resolved`
  let name: string
  let env: Record<string, string>
  let service: Service
  let release = async () => {}

  /** Reads a different page with each request, because concurrent requests for one page share one read. */
  const sendReads = (of: Service, count: number, path = prompts): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        send(of, `${uncachedPath(path)}&page=${index + 1}`, authorization)
      )
    )
  const runSql = async (text: string) => (await resources.acquire(connectTo(env))).sql(text)
  const lock = async (tables: string) => {
    release = await lockTables(env.DATABASE_URL!, tables)
  }
  const countLockWaits = async () => {
    const [row] = await runSql(
      `select count(*)::int as n from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`
    )
    return (row as { readonly n: number }).n
  }

  beforeAll(async () => {
    name = await resources.acquire(freshDatabase)
    env = { DATABASE_URL: toDatabaseUrl(name), ...unlimited }
    service = await startObservedService(env)
    const { importArchive } = await resources.acquire(connectTo(env))
    await importArchive(archive)
    await importArchive(free.archive)
  })
  afterEach(() => release())
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  /** Terminates the service's backends on this database for which a condition is true. */
  const terminate = (condition = "true") =>
    Effect.runPromise(
      onServer(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = '${name}' and application_name = 'prompt-retrieval' and ${condition}`
      )
    )

  it("a read whose backend is terminated is retried once and returns data", async () => {
    await lock(promptTables)
    const waiting = sendReads(service, 1)
    await expect.poll(countLockWaits).toBe(1)
    await terminate("wait_event_type = 'Lock'")
    await expect.poll(countLockWaits).toBe(1)
    await release()
    expect((await waiting).map(({ status }) => status)).toEqual([200])
  })

  it("when all backends are terminated, reads return data, or 503 if the retry fails too", async () => {
    await lock(promptTables)
    const waiting = sendReads(service, 20)
    await expect.poll(countLockWaits).toBeGreaterThan(0)
    await terminate()
    await release()
    expectCodesInTime(await waiting, ["data", "SERVICE_UNAVAILABLE"])
    expect(await waitUntilOk(service, uncachedPath(prompts), authorization)).toBeLessThan(500)
  })

  it("while backends are terminated repeatedly, reads return data or 503, and return data once the terminations stop", async () => {
    const outcomes: Array<Outcome> = []
    let running = true
    const client = async () => {
      while (running) outcomes.push(await send(service, uncachedPath(versions), authorization))
    }
    const clients = [client(), client(), client(), client()]
    for (let i = 0; i < 10; i++) await terminate()
    running = false
    await Promise.all(clients)
    expectCodesInTime(outcomes, ["data", "SERVICE_UNAVAILABLE"])
    expect(await waitUntilOk(service, uncachedPath(versions), authorization)).toBeLessThan(500)
  })

  it("while the prompt tables are locked, reads get 503, and rejections that need no prompt arrive within 1 s", async () => {
    await lock(promptTables)
    const blocked = sendReads(service, 100)
    await expect.poll(countLockWaits).toBeGreaterThan(0)
    const freeKey = `Bearer ${free.keys.active.plaintext}`
    const firstForbidden = await send(service, resolved, freeKey)
    const unknown = await send(service, resolved, `Bearer key_live_${"0".repeat(64)}`)
    const revoked = await send(service, prompts, `Bearer ${keys.revoked.plaintext}`)
    const forbidden = [
      firstForbidden,
      ...(await Promise.all(Array.from({ length: 20 }, () => send(service, prompts, freeKey))))
    ]
    await expectBystandersUnaffected(service)
    expect([unknown.code, revoked.code]).toEqual(["UNAUTHORIZED", "UNAUTHORIZED"])
    expect(forbidden.map(({ status }) => status)).toEqual(Array(21).fill(403))
    const rejections = [unknown, revoked, ...forbidden]
    expect(Math.max(...rejections.map(({ duration }) => duration))).toBeLessThan(1_000)
    expectCodesInTime(await blocked, ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await waitUntilOk(service, uncachedPath(prompts), authorization)).toBeLessThan(500)
  })

  it("while the key table is locked, unknown keys and keys that are not cached get 503, and cached keys read", async () => {
    expect((await send(service, uncachedPath(versions), authorization)).status).toBe(200)
    await lock("api_keys")
    const blocked = [resolved, prompts].flatMap((path) => [
      send(service, path, `Bearer ${keys.second.plaintext}`),
      send(service, path, `Bearer key_live_${"0".repeat(64)}`)
    ])
    await expect.poll(countLockWaits).toBeGreaterThan(0)
    const reads = [
      await send(service, uncachedPath(versions), authorization),
      await send(service, "/readyz", undefined)
    ]
    expect(reads.map(({ status }) => status)).toEqual([200, 200])
    expect(Math.max(...reads.map(({ duration }) => duration))).toBeLessThan(1_000)
    await expectBystandersUnaffected(service)
    expectCodesInTime(await Promise.all(blocked), ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await waitUntilOk(service, uncachedPath(prompts), authorization)).toBeLessThan(500)
  })

  it("while a column is missing, reads of it get 500 without SQL in the body, other reads return data", async () => {
    const before = await send(service, uncachedPath(prompts), authorization)
    await runSql("create table saved as select id, target_model from prompts")
    await runSql("alter table prompts drop column target_model")
    const broken = await send(service, uncachedPath(prompts), authorization)
    expect({ status: broken.status, body: broken.body }).toEqual({
      status: 500,
      body: '{"error":{"code":"INTERNAL_ERROR","message":"Internal error"}}'
    })
    expect((await send(service, uncachedPath(versions), authorization)).status).toBe(200)
    await expectBystandersUnaffected(service)
    await runSql("alter table prompts add column target_model text not null default ''")
    await runSql(
      "update prompts set target_model = saved.target_model from saved where saved.id = prompts.id"
    )
    await runSql("drop table saved")
    expect(await waitUntilOk(service, uncachedPath(prompts), authorization)).toBeLessThan(500)
    expect(await send(service, uncachedPath(prompts), authorization)).toMatchObject({
      status: 200,
      body: before.body
    })
  })

  it("after a column changes its type under a running service, its statements are prepared again", async () => {
    expect((await sendReads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
    await runSql("alter table prompts alter column title type varchar(1000)")
    await waitUntilOk(service, uncachedPath(prompts), authorization)
    expect((await sendReads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })

  // These tests have separate databases and services, so they run at the same time.
  it.concurrent("with at most 5 connections, all of them blocked, reads get 503, and data once the lock is released", async () => {
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
    const limited = await startService({ DATABASE_URL: toDatabaseUrl(database, role), ...unlimited })
    try {
      const admin = await resources.acquire(connectTo({ DATABASE_URL: toDatabaseUrl(database) }))
      const { archive, keys } = sample()
      await admin.importArchive(archive)
      const authorization = `Bearer ${keys.active.plaintext}`
      const many = (count: number) =>
        Promise.all(Array.from({ length: count }, () => send(limited, uncachedPath(prompts), authorization)))
      await waitUntilOk(limited, uncachedPath(prompts), authorization)
      const unlock = await lockTables(toDatabaseUrl(database), promptTables)
      const blocked = many(50)
      await expectBystandersUnaffected(limited)
      expectCodesInTime(await blocked, ["SERVICE_UNAVAILABLE"])
      await unlock()
      expect(await waitUntilOk(limited, uncachedPath(prompts), authorization)).toBeLessThan(2_000)
      expectCodesInTime(await many(50), ["data", "SERVICE_UNAVAILABLE"])
      expect(await waitUntilOk(limited, uncachedPath(prompts), authorization)).toBeLessThan(500)
    } finally {
      await limited.stop()
    }
  })

  it.concurrent("on a read-only database reads return data, last_used_at is not written, and the reason is logged once", async ({
    expect
  }) => {
    const database = await resources.acquire(freshDatabase)
    const env = { DATABASE_URL: toDatabaseUrl(database), ...unlimited }
    const first = await startService(env)
    const { archive, keys } = sample()
    await (await resources.acquire(connectTo(env))).importArchive(archive)
    expect(await first.stop()).toBe(0)
    await Effect.runPromise(onServer(`alter database ${database} set default_transaction_read_only = on`))
    const replica = await startService(env)
    try {
      for (const key of [keys.active, keys.second]) {
        expect(await send(replica, prompts, `Bearer ${key.plaintext}`)).toMatchObject({ status: 200 })
        await expect
          .poll(() => replica.output(), { timeout: 5_000 })
          .toContain("Could not persist last_used_at: cannot execute UPDATE in a read-only transaction")
      }
      // Only time can show that the line is not repeated: uses are written once per second.
      await setTimeout(1_500)
      expect(replica.output().split("Could not persist last_used_at").length - 1).toBe(1)
      const { sql } = await resources.acquire(connectTo(env))
      expect(await sql("select count(*)::int as used from api_keys where last_used_at is not null")).toEqual([
        { used: 0 }
      ])
      await expectBystandersUnaffected(replica)
    } finally {
      expect(await replica.stop()).toBe(0)
    }
  })
})
