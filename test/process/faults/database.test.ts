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
const api = startApi([archive, free.archive])

let release = async () => {}
afterEach(() => release())

/** Reads a different page with each request, because concurrent requests for one page share one read. */
const sendReads = (count: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      send(api.service(), `${uncachedPath(prompts)}&page=${index + 1}`, authorization)
    )
  )

it("while the prompt tables are locked, reads get 503, and requests without access get 401 or 403 before them", async () => {
  release = await lockTables(api.env.DATABASE_URL, promptTables)
  let hasFailed = false
  const blocked = sendReads(100).finally(() => (hasFailed = true))
  await waitForBlockedQuery(api.sql)
  const freeKey = toBearer(free.keys.active.plaintext)
  const rejected = await Promise.all(
    [unknown, toBearer(keys.revoked.plaintext), ...Array(20).fill(freeKey)].map((authorization) =>
      send(api.service(), prompts, authorization)
    )
  )
  expect(rejected.map(({ status }) => status)).toEqual([401, 401, ...Array(20).fill(403)])
  await expectBystandersUnaffected(api.service())
  expect(hasFailed).toBe(false)
  expectCodes(await blocked, ["SERVICE_UNAVAILABLE"])
  await release()
  await waitUntilOk(api.service(), uncachedPath(prompts), authorization)
})

it("after the type of a column changes, a running service prepares its statements again", async () => {
  // A read that waits too long for a connection gets 503, but none gets 500.
  const expectReads = async () => expectCodes(await sendReads(50), ["data", "SERVICE_UNAVAILABLE"])
  await expectReads()
  await api.sql("alter table prompts alter column intent type varchar(1000)")
  await waitUntilOk(api.service(), uncachedPath(prompts), authorization)
  await expectReads()
})
