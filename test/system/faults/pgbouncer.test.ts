import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { send, uncachedPath } from "../../support/clients/requests.ts"
import { connectTo } from "../../support/database/connection.ts"
import { lockTables, promptTables } from "../../support/database/locks.ts"
import { type PoolMode, runPgBouncer } from "../../support/database/pgbouncer.ts"
import { freshDatabase, onServer, toDatabaseUrl } from "../../support/database/server.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { runService, type Service, startService, unlimited } from "../../support/services/startService.ts"

const feedDown = "Change feed down; caching disabled"

/**
 * Selects the number of prepared statements, and the session settings that the service changes on direct connections.
 */
const selectState = `select pg_backend_pid() as pid, current_setting('statement_timeout') as timeout,
  current_setting('plan_cache_mode') as plans, (select count(*)::int from pg_prepared_statements) as prepared`

/** Returns the state of each session of a pool. A client of the pool must not change a session for other clients. */
const listSessions = (url: string, clients: number) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const connect = PgConnection.make({ url: Redacted.make(url), prepare: false })
      const connections = yield* Effect.all(Array.from({ length: clients }, () => connect))
      // Because each connection has an open transaction, each connection gets a different session of the pool.
      for (const connection of connections) yield* connection.query("begin")
      const states = []
      for (const connection of connections) {
        const { rows } = yield* connection.query(selectState)
        states.push({ ...rows[0] } as { pid: number; timeout: string; plans: string; prepared: number })
      }
      for (const connection of connections) yield* connection.query("rollback")
      return states
    }).pipe(Effect.scoped)
  )

describe.each(["session", "transaction"] as const)(
  "PgBouncer in %s mode with its default settings",
  (mode: PoolMode) => {
    const acquire = makeAcquire()
    const { archive, keys } = sample()
    const authorization = `Bearer ${keys.active.plaintext}`
    let direct: { readonly DATABASE_URL: string }
    let pooled: { readonly DATABASE_URL: string }
    let service: Service

    beforeAll(async () => {
      const database = await acquire(freshDatabase)
      direct = { DATABASE_URL: toDatabaseUrl(database) }
      await Effect.runPromise(
        onServer(`alter role current_user in database ${database} set statement_timeout = '3s'`)
      )
      pooled = { DATABASE_URL: (await acquire(runPgBouncer(direct.DATABASE_URL, mode))).url }
      const feed = mode === "transaction" ? { DATABASE_FEED_URL: direct.DATABASE_URL } : {}
      service = await acquire(runService(() => startService({ ...pooled, ...unlimited, ...feed })))
      await (await acquire(connectTo(direct))).importArchive(archive)
    })

    const paths = archive.prompts.flatMap(({ id, versions }) => [
      `/api/v1/prompts/${id}`,
      `/api/v1/prompts/${id}/resolved`,
      `/api/v1/prompts/${id}/versions`,
      ...versions.map(({ version_number }) => `/api/v1/prompts/${id}/versions/${version_number}`)
    ])

    it(`behind PgBouncer in ${mode} mode, every read succeeds and leaves neither settings nor prepared statements in shared sessions`, async () => {
      for (let round = 0; round < 5; round++) {
        const outcomes = await Promise.all(
          [...paths, "/api/v1/prompts"].map((path) => send(service, uncachedPath(path), authorization))
        )
        expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200]))
      }
      const sessions = await listSessions(pooled.DATABASE_URL, 8)
      expect(new Set(sessions.map(({ pid }) => pid)).size).toBe(8)
      for (const { timeout, plans, prepared } of sessions)
        expect({ timeout, plans, prepared }).toEqual({ timeout: "3s", plans: "auto", prepared: 0 })
    })

    it(`behind PgBouncer in ${mode} mode, the service caches responses, shows changes, and ends reads at the statement timeout of the role`, async () => {
      const { sql } = await acquire(connectTo(direct))
      const { id } = archive.prompts[0]!
      const readCached = () => send(service, `/api/v1/prompts/${id}`, authorization)
      await readCached()
      const release = await lockTables(direct.DATABASE_URL, promptTables)
      try {
        // The tables are locked, so only a response from the cache can be 200.
        expect(await readCached()).toMatchObject({ status: 200 })
        const { status } = await send(service, uncachedPath("/api/v1/prompts"), authorization)
        expect(status).toBe(503)
      } finally {
        await release()
      }
      await sql("update prompts set title = 'Changed' where id = $1", [id])
      await expect.poll(async () => (await readCached()).body).toContain('"title":"Changed"')
      const output = service.output()
      expect(output).toContain("A read exceeded the 3 s statement timeout; failed as unavailable")
      for (const line of [feedDown, "PostgreSQL is unavailable", "Reads go through a pooler"])
        expect(output).not.toContain(line)
    })
  }
)

describe("a change feed that receives no notification", () => {
  const acquire = makeAcquire()
  const start = (env: Record<string, string>) => acquire(runService(() => startService(env)))
  const reason = `${feedDown}: no notification arrives; DATABASE_FEED_URL must lead directly to PostgreSQL, to the database of DATABASE_URL`

  it("behind PgBouncer in transaction mode, the change feed stays down, and the log requests DATABASE_FEED_URL and a statement_timeout once", async () => {
    const { url } = await acquire(runPgBouncer(toDatabaseUrl(await acquire(freshDatabase)), "transaction"))
    const service = await start({ DATABASE_URL: url })
    await expect.poll(() => service.output().split(reason).length - 1).toBe(1)
    expect(service.output().split(feedDown)).toHaveLength(2)
    expect(service.output()).not.toContain("Change feed restored")
    expect(service.output().split(/run ALTER ROLE \w+ SET statement_timeout = '3s'/)).toHaveLength(2)
  })

  it("if DATABASE_FEED_URL leads to another database or to no server, the change feed stays down, and the log states the reason", async () => {
    const DATABASE_URL = toDatabaseUrl(await acquire(freshDatabase))
    const refused = "postgres://any@127.0.0.1:1/any"
    for (const DATABASE_FEED_URL of [toDatabaseUrl(await acquire(freshDatabase)), refused]) {
      const service = await start({ DATABASE_URL, DATABASE_FEED_URL })
      const line = DATABASE_FEED_URL === refused ? `${feedDown}: connect ECONNREFUSED 127.0.0.1:1` : reason
      await expect.poll(() => service.output()).toContain(line)
    }
  })
})
