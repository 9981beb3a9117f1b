import * as Effect from "effect/Effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { send, uncachedPath } from "../support/clients/requests.ts"
import { freshName, onServer, toDatabaseUrl } from "../support/database/server.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { listWarnings } from "../support/services/logLines.ts"
import { startService, unlimited } from "../support/services/startService.ts"

// The reads of one workspace leave one connection free for other workspaces, so the test needs several workspaces.
const tenants = [sample(), sample(), sample(), sample()]
const { name, sql } = makeTestDatabase(tenants.map(({ archive }) => archive))
const role = freshName()
const max = 6

// If the service opens more connections, PostgreSQL rejects them, and a request gets 503 or the log contains a warning.
const createRole = `create role ${role} login connection limit ${max} in role pg_read_all_data, pg_write_all_data`
beforeAll(() => Effect.runPromise(onServer(createRole)))
afterAll(() => Effect.runPromise(onServer(`drop role ${role}`)))

const countConnections = async (): Promise<number> =>
  (await sql("select from pg_stat_activity where usename = $1", [role])).length

it("a process has at most 4 connections to PostgreSQL after its start, and at most DATABASE_MAX_CONNECTIONS under load", async () => {
  const service = await startService({
    DATABASE_URL: toDatabaseUrl(name, role),
    DATABASE_MAX_CONNECTIONS: String(max),
    ...unlimited
  })
  await expect.poll(countConnections).toBeGreaterThanOrEqual(3)
  expect(await countConnections()).toBeLessThanOrEqual(4)
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const { archive, keys } = tenants[index % tenants.length]!
      const path = uncachedPath(`/api/v1/prompts/${archive.prompts[0]!.id}/resolved`)
      return send(service, path, `Bearer ${keys.active.plaintext}`)
    })
  )
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  // PostgreSQL counts a connection only after its login. The service can open its last connection, for background
  // writes, only when it stops.
  await expect.poll(countConnections).toBeGreaterThanOrEqual(max - 1)
  expect(await service.stop()).toBe(0)
  expect(listWarnings(service.output())).toEqual([])
})
