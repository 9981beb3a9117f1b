import { afterEach, expect, it } from "vitest"
import { startApi } from "../../api/startApi.ts"
import { sample } from "../../support/archives.ts"
import { expectBystandersUnaffected, send, uncachedPath } from "../../support/clients/requests.ts"
import { lockTables, promptTables, waitForBlockedQuery } from "../../support/database/locks.ts"

const { archive, keys } = sample()
const free = sample({ tier: "free" })
const api = startApi([archive, free.archive])

let release = async () => {}
afterEach(() => release())

const readStatus = async (key: string, page = 1) =>
  (await send(api.service(), `${uncachedPath("/api/v1/prompts")}&page=${page}`, `Bearer ${key}`)).status
/** Reads a different page with each request, because the service can cache the response to the first request. */
const readPages = async (count: number) => [
  ...new Set(
    await Promise.all(Array.from({ length: count }, (_, page) => readStatus(keys.active.plaintext, page + 1)))
  )
]
const waitUntilOk = () => expect.poll(() => readStatus(keys.active.plaintext), { interval: 20 }).toBe(200)

it("while the prompt tables are locked, reads time out with 503, but requests without access get 401 or 403 at once", async () => {
  release = await lockTables(api.env.DATABASE_URL, promptTables)
  let hasFailed = false
  const blocked = readPages(100).finally(() => (hasFailed = true))
  await waitForBlockedQuery(api.sql)
  const rejected = [`key_live_${"0".repeat(64)}`, keys.revoked.plaintext, free.keys.active.plaintext]
  expect(await Promise.all(rejected.map((key) => readStatus(key)))).toEqual([401, 401, 403])
  await expectBystandersUnaffected(api.service())
  expect(hasFailed).toBe(false)
  expect(await blocked).toEqual([503])
  await release()
  await waitUntilOk()
})

it("after the type of a column changes, a running service prepares its statements again", async () => {
  await readPages(50)
  await api.sql("alter table prompts alter column intent type varchar(1000)")
  await waitUntilOk()
  // A read that waits too long for a connection gets 503, but no read gets 500.
  expect([200, 503]).toEqual(expect.arrayContaining(await readPages(50)))
})
