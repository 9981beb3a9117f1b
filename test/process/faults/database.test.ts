import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import { lockTables, promptTables } from "../../support/database/locks.ts"
import { freshDatabase, toDatabaseUrl } from "../../support/postgres.ts"
import {
  expectBystandersUnaffected,
  expectCodesInTime,
  type Outcome,
  send,
  uncachedPath,
  waitUntilOk
} from "../../support/clients/requests.ts"
import { type Service } from "../../support/service.ts"
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

  it("while the prompt tables are locked, reads get 503, and requests without access get 401 or 403 within 1 s", async () => {
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

  it("while the key table is locked, unknown keys and keys that are not cached get 503, and cached keys still read prompts", async () => {
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

  it("after the type of a column changes, a running service prepares its statements again", async () => {
    expect((await sendReads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
    await runSql("alter table prompts alter column title type varchar(1000)")
    await waitUntilOk(service, uncachedPath(prompts), authorization)
    expect((await sendReads(service, 50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })
})
