import * as Effect from "effect/Effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { freshName, onServer, toDatabaseUrl } from "../support/postgres.ts"
import { send, uncachedPath } from "../support/clients/requests.ts"
import { startService, unlimited } from "../support/service.ts"
import { makeTestDatabase } from "../support/testDatabase.ts"

const { archive, keys } = sample()
const { name, sql } = makeTestDatabase([archive])
const role = freshName()

beforeAll(() => Effect.runPromise(onServer(`create role ${role} login superuser`)))
afterAll(() => Effect.runPromise(onServer(`drop role ${role}`)))

const countConnections = async (): Promise<number> =>
  (await sql("select from pg_stat_activity where usename = $1", [role])).length

it("a process has at most 4 connections to PostgreSQL after its start, and at most DATABASE_MAX_CONNECTIONS under load", async () => {
  const max = 6
  const service = await startService({
    DATABASE_URL: toDatabaseUrl(name, role),
    DATABASE_MAX_CONNECTIONS: String(max),
    ...unlimited
  })
  await expect.poll(countConnections).toBeGreaterThanOrEqual(3)
  expect(await countConnections()).toBeLessThanOrEqual(4)
  let most = 0
  let isReading = true
  const watch = (async () => {
    while (isReading) most = Math.max(most, await countConnections())
  })()
  const statuses = new Set<number | string>()
  for (let round = 0; round < 5; round++) {
    const responses = await Promise.all(
      Array.from({ length: 50 }, (_, index) => {
        const { id } = archive.prompts[index % archive.prompts.length]!
        const key = index % 2 === 0 ? keys.active : keys.second
        return send(service, uncachedPath(`/api/v1/prompts/${id}/resolved`), `Bearer ${key.plaintext}`)
      })
    )
    for (const { status } of responses) statuses.add(status)
  }
  isReading = false
  await watch
  expect(await service.stop()).toBe(0)
  expect([...statuses]).toEqual([200])
  expect(most).toBeGreaterThanOrEqual(4)
  expect(most).toBeLessThanOrEqual(max)
})
