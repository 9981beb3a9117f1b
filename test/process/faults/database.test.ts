import { afterEach, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { lockTables, promptTables, waitForBlockedQuery } from "../../support/database/locks.ts"
import {
  expectBystandersUnaffected,
  expectCodes,
  send,
  uncachedPath,
  waitUntilOk
} from "../../support/clients/requests.ts"
import { startApi } from "../../api/startApi.ts"

const { archive, keys } = sample()
const free = sample({ tier: "free" })
const toBearer = (plaintext: string) => `Bearer ${plaintext}`
const authorization = toBearer(keys.active.plaintext)
const unknown = toBearer(`key_live_${"0".repeat(64)}`)
const prompts = "/api/v1/prompts"
const versions = `/api/v1/prompts/${archive.prompts[0]!.id}/versions`
const api = startApi([archive, free.archive])

let release = async () => {}
const lock = async (tables: string) => {
  release = await lockTables(api.env.DATABASE_URL, tables)
}
afterEach(() => release())

const sendAll = (authorizations: ReadonlyArray<string>, path = prompts) =>
  Promise.all(authorizations.map((authorization) => send(api.service(), path, authorization)))
/** Reads a different page with each request, because concurrent requests for one page share one read. */
const sendReads = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      send(api.service(), `${uncachedPath(prompts)}&page=${index + 1}`, authorization)
    )
  )

it("while the prompt tables are locked, reads get 503, and requests without access get 401 or 403 before them", async () => {
  await lock(promptTables)
  let hasFailed = false
  const blocked = sendReads(100).finally(() => (hasFailed = true))
  await waitForBlockedQuery(api.sql)
  const freeKey = toBearer(free.keys.active.plaintext)
  const rejected = await sendAll([unknown, toBearer(keys.revoked.plaintext), ...Array(20).fill(freeKey)])
  expect(rejected.map(({ status }) => status)).toEqual([401, 401, ...Array(20).fill(403)])
  await expectBystandersUnaffected(api.service())
  expect(hasFailed).toBe(false)
  expectCodes(await blocked, ["SERVICE_UNAVAILABLE"])
  await release()
  await waitUntilOk(api.service(), uncachedPath(prompts), authorization)
})

it("while the key table is locked, only cached keys read prompts, and all other keys get 503", async () => {
  expect((await send(api.service(), uncachedPath(versions), authorization)).status).toBe(200)
  await lock("api_keys")
  const blocked = sendAll([toBearer(keys.second.plaintext), unknown])
  await waitForBlockedQuery(api.sql)
  expect((await send(api.service(), uncachedPath(versions), authorization)).status).toBe(200)
  expect((await send(api.service(), "/readyz")).status).toBe(200)
  await expectBystandersUnaffected(api.service())
  expectCodes(await blocked, ["SERVICE_UNAVAILABLE"])
  await release()
  await waitUntilOk(api.service(), uncachedPath(prompts), toBearer(keys.second.plaintext))
})

it("after the type of a column changes, a running service prepares its statements again", async () => {
  // A read that waits too long for a connection gets 503, but none gets 500.
  const expectReads = async () => expectCodes(await sendReads(50), ["data", "SERVICE_UNAVAILABLE"])
  await expectReads()
  await api.sql("alter table prompts alter column intent type varchar(1000)")
  await waitUntilOk(api.service(), uncachedPath(prompts), authorization)
  await expectReads()
})
