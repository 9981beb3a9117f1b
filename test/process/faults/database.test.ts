import { afterEach, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { lockTables, promptTables, waitForBlockedQuery } from "../../support/database/locks.ts"
import {
  expectBystandersUnaffected,
  expectCodesInTime,
  type Outcome,
  send,
  uncachedPath,
  waitUntilOk
} from "../../support/clients/requests.ts"
import { startApi } from "../../api/startApi.ts"

describe("a database that fails or blocks", () => {
  const { archive, keys } = sample()
  const free = sample({ tier: "free" })
  const authorization = `Bearer ${keys.active.plaintext}`
  const prompts = "/api/v1/prompts"
  const versions = `/api/v1/prompts/${archive.prompts[0]!.id}/versions`
  const resolved = `/api/v1/prompts/${free.archive.prompts[0]!.id}/resolved`
  const api = startApi([archive, free.archive])
  let release = async () => {}

  /** Reads a different page with each request, because concurrent requests for one page share one read. */
  const sendReads = (count: number, path = prompts): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(
      Array.from({ length: count }, (_, index) =>
        send(api.service(), `${uncachedPath(path)}&page=${index + 1}`, authorization)
      )
    )
  const lock = async (tables: string) => {
    release = await lockTables(api.env.DATABASE_URL, tables)
  }

  afterEach(() => release())

  it("while the prompt tables are locked, reads get 503, and requests without access get 401 or 403 within 1 s", async () => {
    await lock(promptTables)
    const blocked = sendReads(100)
    await waitForBlockedQuery(api.sql)
    const freeKey = `Bearer ${free.keys.active.plaintext}`
    const firstForbidden = await send(api.service(), resolved, freeKey)
    const unknown = await send(api.service(), resolved, `Bearer key_live_${"0".repeat(64)}`)
    const revoked = await send(api.service(), prompts, `Bearer ${keys.revoked.plaintext}`)
    const forbidden = [
      firstForbidden,
      ...(await Promise.all(Array.from({ length: 20 }, () => send(api.service(), prompts, freeKey))))
    ]
    await expectBystandersUnaffected(api.service())
    expect([unknown.code, revoked.code]).toEqual(["UNAUTHORIZED", "UNAUTHORIZED"])
    expect(forbidden.map(({ status }) => status)).toEqual(Array(21).fill(403))
    const rejections = [unknown, revoked, ...forbidden]
    expect(Math.max(...rejections.map(({ duration }) => duration))).toBeLessThan(1_000)
    expectCodesInTime(await blocked, ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await waitUntilOk(api.service(), uncachedPath(prompts), authorization)).toBeLessThan(500)
  })

  it("while the key table is locked, unknown keys and keys that are not cached get 503, and cached keys still read prompts", async () => {
    expect((await send(api.service(), uncachedPath(versions), authorization)).status).toBe(200)
    await lock("api_keys")
    const blocked = [resolved, prompts].flatMap((path) => [
      send(api.service(), path, `Bearer ${keys.second.plaintext}`),
      send(api.service(), path, `Bearer key_live_${"0".repeat(64)}`)
    ])
    await waitForBlockedQuery(api.sql)
    const reads = [
      await send(api.service(), uncachedPath(versions), authorization),
      await send(api.service(), "/readyz", undefined)
    ]
    expect(reads.map(({ status }) => status)).toEqual([200, 200])
    expect(Math.max(...reads.map(({ duration }) => duration))).toBeLessThan(1_000)
    await expectBystandersUnaffected(api.service())
    expectCodesInTime(await Promise.all(blocked), ["SERVICE_UNAVAILABLE"])
    await release()
    expect(await waitUntilOk(api.service(), uncachedPath(prompts), authorization)).toBeLessThan(500)
  })

  it("after the type of a column changes, a running service prepares its statements again", async () => {
    expect((await sendReads(50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
    await api.sql("alter table prompts alter column intent type varchar(1000)")
    await waitUntilOk(api.service(), uncachedPath(prompts), authorization)
    expect((await sendReads(50)).map(({ status }) => status)).toEqual(Array(50).fill(200))
  })
})
