import { setTimeout } from "node:timers/promises"
import type * as Effect from "effect/Effect"
import { beforeAll, describe, expect, it } from "vitest"
import { type Key, key, sample } from "../../support/archives.ts"
import { expectBystandersUnaffected, send } from "../../support/clients/requests.ts"
import type { Cluster } from "../../support/database/cluster.ts"
import { connectTo } from "../../support/database/connection.ts"
import { startPair } from "../../support/database/failover.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { listWarnings } from "../../support/services/logLines.ts"
import { readMetric, responseHits } from "../../support/services/metrics.ts"
import { type ObservedService, startObservedService } from "../../support/services/startObservedService.ts"
import { runService } from "../../support/services/startService.ts"

describe("a hot standby of another PostgreSQL server", () => {
  const acquire = makeAcquire()
  const { archive, keys } = sample()
  const third = key(archive.workspace.id, archive.users[0]!)
  const authorization = `Bearer ${keys.active.plaintext}`
  const item = `/api/v1/prompts/${archive.prompts[0]!.id}`
  const paths = ["/api/v1/prompts", item, `${item}/resolved`, `${item}/versions`, `${item}/versions/1`]
  let primary: Effect.Success<ReturnType<typeof connectTo>>
  let standby: Cluster
  let service: ObservedService

  beforeAll(async () => {
    const pair = await acquire(startPair({ ...archive, api_keys: [...archive.api_keys, third.stored] }))
    standby = pair.standby
    primary = await acquire(connectTo({ DATABASE_URL: pair.primary.url }))
    service = await acquire(runService(() => startObservedService({ DATABASE_URL: standby.url })))
  })

  const readWarnings = () => listWarnings(service.output()).toSorted()
  const expectedWarnings = [
    "Change feed down; caching disabled: cannot execute LISTEN during recovery",
    "Could not persist last_used_at: cannot execute UPDATE in a read-only transaction"
  ]
  const usedKeys = "select id from api_keys where last_used_at is not null"

  it("on a standby, reads return uncached data as soon as the data is replicated, and the log warns once about the change feed and last_used_at", async () => {
    const readAll = async (key: Key) => {
      for (const path of [...paths, ...paths])
        expect(await send(service, path, `Bearer ${key.plaintext}`)).toMatchObject({ status: 200 })
    }
    await readAll(keys.active)
    expect((await send(service, "/readyz")).status).toBe(200)
    await expectBystandersUnaffected(service)
    await expect.poll(readWarnings).toEqual(expectedWarnings)

    // During this pause, the change feed tries to reconnect and the service tries to write key uses. The log must
    // contain no further warning.
    await readAll(keys.second)
    await setTimeout(2_500)
    await readAll(keys.second)
    expect(readWarnings()).toEqual(expectedWarnings)
    expect(await readMetric(service.metricsPort, responseHits)).toBe(0)
    expect(await readMetric(service.metricsPort, "prompt_retrieval_change_feed_up")).toBe(0)
    expect(await primary.sql(usedKeys)).toEqual([])

    await primary.sql("update prompts set title = 'Edited' where id = $1", [archive.prompts[0]!.id])
    await primary.sql("update api_keys set revoked_at = now() where id = $1", [keys.second.stored.id])
    const title = async () => JSON.parse((await send(service, item, authorization)).body).data.title
    await expect.poll(title).toBe("Edited")
    const status = async () => (await send(service, item, `Bearer ${keys.second.plaintext}`)).status
    await expect.poll(status).toBe(401)
  })

  it("after a standby is promoted, caching and the recording of key uses start without a restart", async () => {
    const { sql } = await acquire(connectTo({ DATABASE_URL: standby.url }))
    await sql("select pg_promote()")
    await expect.poll(() => readMetric(service.metricsPort, "prompt_retrieval_change_feed_up")).toBe(1)
    for (let i = 0; i < 2; i++)
      expect(await send(service, item, `Bearer ${third.plaintext}`)).toMatchObject({ status: 200 })
    expect(await readMetric(service.metricsPort, responseHits)).toBe(1)
    await expect.poll(() => sql(usedKeys)).toEqual([{ id: third.stored.id }])
    expect(readWarnings()).toEqual(expectedWarnings)
  })
})
