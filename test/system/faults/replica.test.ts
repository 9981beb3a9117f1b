import { setTimeout } from "node:timers/promises"
import type * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { key, prompt } from "../../support/archives.ts"
import type { Cluster } from "../../support/database/cluster.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import type { Reply } from "../../support/clients/read.ts"
import { quantile } from "../../support/services/outage.ts"
import {
  delayedBy,
  gaugeOf,
  listReplicaLines,
  makeReplicaTenant,
  primaryReads,
  readUncached,
  replicaReads,
  type ReplicatedService,
  startClusters,
  startReadLoad,
  startReplicatedService,
  waitUntilOnReplica
} from "../../support/database/replicas.ts"

const poll = { timeout: 40_000, interval: 50 }
type Sql = Effect.Success<ReturnType<typeof connectTo>>["sql"]

/** Returns the number in the title of a prompt, or `undefined` if the status is not 200. */
const toNumber = ({ status, body }: Reply): number | undefined =>
  status === 200 ? Number(JSON.parse(body).data.title.split(" ")[1]) : undefined

/** Expects the statuses of replies to be exactly these. */
const expectStatuses = (replies: ReadonlyArray<Reply>, ...statuses: ReadonlyArray<number>): void =>
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set(statuses))

/** A read of a number that only grows. */
interface Observation {
  readonly startedAt: number
  readonly endedAt: number
  readonly value: number
}

/** Returns how many observations have a lower value than another observation that had ended before they started. */
const countStepsBack = (observations: ReadonlyArray<Observation>): number => {
  const ends = observations.toSorted((a, b) => a.endedAt - b.endedAt)
  let ended = 0
  let highest = Number.NEGATIVE_INFINITY
  let steps = 0
  for (const { startedAt, value } of observations.toSorted((a, b) => a.startedAt - b.startedAt)) {
    for (; ended < ends.length && ends[ended]!.endedAt < startedAt; ended++)
      highest = Math.max(highest, ends[ended]!.value)
    if (value < highest) steps++
  }
  return steps
}

/**
 * Returns, for each commit, the time from the commit to the start of the last read that returned an older value, or 0
 * if there is no such read.
 */
const findVisibility = (
  observations: ReadonlyArray<Observation>,
  commits: ReadonlyArray<{ readonly value: number; readonly at: number }>
): ReadonlyArray<number> =>
  commits.map(({ value, at }) =>
    Math.max(0, ...observations.filter((read) => read.value < value).map((read) => read.startedAt - at))
  )

const setTitle = (sql: Sql, id: string, number: number) =>
  sql("update prompts set title = $1 where id = $2", [`Edit ${number}`, id])

describe("a service with a standby that is 5 s behind", { timeout: 180_000 }, () => {
  const resources = makeResources()
  const tenants = Array.from({ length: 20 }, () => makeReplicaTenant(5))
  const idle = makeReplicaTenant()
  let service: ReplicatedService
  let sql: Sql

  beforeAll(async () => {
    const { primary, standbys } = await resources.acquire(
      startClusters([...tenants, idle], [delayedBy("5s")])
    )
    ;({ sql } = await resources.acquire(connectTo({ DATABASE_URL: primary.url })))
    service = await startReplicatedService(primary, standbys)
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  it("with a standby 5 s behind, 1,000 edits and 100 revocations are visible immediately, and no read returns an earlier state", async () => {
    const observed = new Map<string, Array<Observation>>()
    const observe = (name: string, { startedAt, endedAt }: Reply, value: number) => {
      if (!observed.has(name)) observed.set(name, [])
      observed.get(name)!.push({ startedAt, endedAt, value })
    }
    for (const { archive } of tenants) await setTitle(sql, archive.prompts[0]!.id, 0)
    await waitUntilOnReplica(service, tenants[0]!)

    const revoked = tenants.flatMap(({ further, path }) =>
      further.map(({ plaintext, stored }) => ({ plaintext, id: stored.id, path }))
    )
    const load = startReadLoad(
      service,
      [
        ...tenants.map(({ path, active }) => ({
          path,
          plaintext: active.plaintext,
          onReply: (reply: Reply) => observe(path, reply, toNumber(reply) ?? Number.NaN)
        })),
        ...revoked.map(({ path, plaintext }) => ({
          path,
          plaintext,
          onReply: (reply: Reply) => observe(plaintext, reply, reply.status === 401 ? 1 : 0)
        }))
      ],
      6
    )
    const commits = new Map<string, Array<{ readonly value: number; readonly at: number }>>()
    for (let i = 1; i <= 1_000; i++) {
      const { path, archive } = tenants[i % tenants.length]!
      await setTitle(sql, archive.prompts[0]!.id, i)
      if (!commits.has(path)) commits.set(path, [])
      commits.get(path)!.push({ value: i, at: performance.now() })
      if (i % 10 === 0) {
        const { plaintext, id } = revoked[i / 10 - 1]!
        await sql("update api_keys set revoked_at = now() where id = $1", [id])
        commits.set(plaintext, [{ value: 1, at: performance.now() }])
      }
      await setTimeout(8)
    }
    // Waits until the standby runs reads again.
    const before = await service.metric(replicaReads)
    await expect.poll(() => service.metric(replicaReads), poll).toBeGreaterThan(before + 20)
    const replies = await load.stop()
    const steps = [...observed.values()].map(countStepsBack)
    const visibility = [...commits].flatMap(([name, all]) => findVisibility(observed.get(name)!, all))

    expectStatuses(replies, 200, 401)
    expect(steps.filter((count) => count > 0)).toEqual([])
    expect(visibility).toHaveLength(1_100)
    const durations = replies.map(({ startedAt, endedAt }) => endedAt - startedAt)
    expect(quantile(visibility, 0.99)).toBeLessThanOrEqual(100 + quantile(durations, 0.99))
    // The standby is 5 s behind, so a read that it served would show a change only after 5 s.
    expect(Math.max(...visibility)).toBeLessThan(4_000)
    expect(await service.metric("replica_fenced_reads_total")).toBeGreaterThan(20)
  })

  it("with a standby 5 s behind, a new key and a new prompt work as soon as they are committed, and a revoked key is rejected", async () => {
    const { archive, path, active } = idle
    const keyColumns = "id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at"
    for (let i = 0; i < 20; i++) {
      const { plaintext, stored } = key(archive.workspace.id, archive.users[0]!)
      const { id } = prompt()
      await sql(
        `insert into api_keys (${keyColumns}) select $1, workspace_id, created_by, name, decode($2, 'hex'), key_start, key_end, created_at
          from api_keys where id = $3`,
        [stored.id, stored.key_hash, active.stored.id]
      )
      expect((await readUncached(service, path, plaintext)).status).toBe(200)
      await sql(
        `insert into prompts select (jsonb_populate_record(p, jsonb_build_object('id', $1::text))).* from prompts p where id = $2`,
        [id, archive.prompts[0]!.id]
      )
      expect((await readUncached(service, `/api/v1/prompts/${id}`, plaintext)).status).toBe(200)
      await sql("update api_keys set revoked_at = now() where id = $1", [stored.id])
      const startedAt = performance.now()
      await expect.poll(async () => (await readUncached(service, path, plaintext)).status, poll).toBe(401)
      expect(performance.now() - startedAt).toBeLessThan(4_000)
      expect((await readUncached(service, path, plaintext)).status).toBe(401)
    }
  })
})

describe("a service whose standbys fail", { timeout: 180_000 }, () => {
  const resources = makeResources()
  const tenants = Array.from({ length: 4 }, () => makeReplicaTenant(2))
  const [tenant] = tenants as [(typeof tenants)[0]]
  let service: ReplicatedService
  let standbys: ReadonlyArray<Cluster>
  let primary: Cluster
  let sql: Sql

  beforeAll(async () => {
    ;({ primary, standbys } = await resources.acquire(startClusters(tenants, [[], []])))
    ;({ sql } = await resources.acquire(connectTo({ DATABASE_URL: primary.url })))
    service = await startReplicatedService(primary, [standbys[0]!])
  })
  afterAll(async () => {
    for (const cluster of [...(standbys ?? []), primary]) cluster?.thaw()
    await service?.stop()
    await resources.release()
  })

  const targets = tenants.flatMap(({ path, active }) =>
    ["", "/resolved", "/versions"].map((end) => ({ path: `${path}${end}`, plaintext: active.plaintext }))
  )
  const up = () => service.metric(gaugeOf("up", standbys[0]!))

  it.each([
    ["is killed", (standby: Cluster) => standby.kill(), (standby: Cluster) => standby.start()],
    ["is suspended", async (standby: Cluster) => standby.freeze(), async (standby: Cluster) => standby.thaw()]
  ])(
    "while the standby %s, the primary serves reads, and afterwards the standby serves reads again",
    async (_, begin, end) => {
      const [standby] = standbys
      await waitUntilOnReplica(service, tenant)
      const lines = listReplicaLines(service).length
      const load = startReadLoad(service, targets, 4)
      await setTimeout(500)
      await begin(standby!)
      await expect.poll(up, poll).toBe(0)
      const before = await service.metric(primaryReads)
      await expect.poll(() => service.metric(primaryReads), poll).toBeGreaterThan(before + 50)
      await setTitle(sql, tenant.archive.prompts[0]!.id, 1)
      await end(standby!)
      await expect.poll(up, poll).toBe(1)
      await waitUntilOnReplica(service, tenant)
      const replies = await load.stop()
      expectStatuses(replies, 200)
      const { host } = new URL(standby!.url)
      const logged = listReplicaLines(service).slice(lines)
      expect(logged.filter((line) => line.startsWith(`Replica ${host} is out of use: `))).not.toEqual([])
      expect(logged.at(-1)).toBe(`Replica ${host} is in use again`)
    }
  )

  it("while the standby delays commits by 1 h, the primary serves reads with all edits, and the lag is reported", async () => {
    const [standby] = standbys
    await waitUntilOnReplica(service, tenant)
    const onStandby = await resources.acquire(connectTo({ DATABASE_URL: standby!.url }))
    const setDelay = async (delay: string) => {
      await onStandby.sql(`alter system set recovery_min_apply_delay = '${delay}'`)
      await onStandby.sql("select pg_reload_conf()")
    }
    await setDelay("1h")
    const load = startReadLoad(service, targets, 2)
    for (let i = 1; i <= 20; i++) {
      await setTitle(sql, tenant.archive.prompts[0]!.id, 100 + i)
      const visible = async () => toNumber(await readUncached(service, tenant.path, tenant.active.plaintext))
      await expect.poll(visible, poll).toBe(100 + i)
    }
    await expect.poll(() => service.metric(gaugeOf("lag_seconds", standby!)), poll).toBeGreaterThan(10)
    const replies = await load.stop()
    expectStatuses(replies, 200)
    const { host } = new URL(standby!.url)
    const lines = () => listReplicaLines(service)
    expect(lines()).toContain(`Replica ${host} is out of use: it is more than 10 s behind`)
    await setDelay("0")
    await waitUntilOnReplica(service, tenant)
    expect(lines().at(-1)).toBe(`Replica ${host} is in use again`)
  })

  it("while the primary is unreachable, the standby serves the state that it has replayed, even to keys that are not cached", async () => {
    await waitUntilOnReplica(service, tenant)
    await setTitle(sql, tenant.archive.prompts[0]!.id, 200)
    await waitUntilOnReplica(service, tenant)
    for (const { path, active } of tenants) await waitUntilOnReplica(service, { path, active })
    await primary.kill()
    const load = startReadLoad(service, targets, 2)
    await expect.poll(() => service.metric("change_feed_up"), poll).toBe(0)
    for (const { path, further } of tenants) {
      for (const { plaintext } of further)
        expect((await readUncached(service, path, plaintext)).status).toBe(200)
    }
    expect(toNumber(await readUncached(service, tenant.path, tenant.active.plaintext))).toBe(200)
    const missing = `/api/v1/prompts/${prompt().id}`
    expect((await readUncached(service, missing, tenant.active.plaintext)).status).toBe(404)
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200)
    await setTimeout(5_000)
    const replies = await load.stop()
    expectStatuses(replies, 200)

    await primary.start()
    await expect.poll(() => service.metric("change_feed_up"), poll).toBe(1)
    const after = await resources.acquire(connectTo({ DATABASE_URL: primary.url }))
    await setTitle(after.sql, tenant.archive.prompts[0]!.id, 201)
    const visible = async () => toNumber(await readUncached(service, tenant.path, tenant.active.plaintext))
    await expect.poll(visible, poll).toBe(201)
    await waitUntilOnReplica(service, tenant)
    sql = after.sql
  })

  it("a service with two standbys uses the second standby when the first fails, without a failed request", async () => {
    const both = await startReplicatedService(primary, standbys)
    try {
      await waitUntilOnReplica(both, tenant)
      const load = startReadLoad(both, targets, 4)
      for (const standby of standbys) {
        await setTitle(sql, tenant.archive.prompts[0]!.id, 300)
        await standby.kill()
        await expect.poll(() => both.metric(gaugeOf("up", standby)), poll).toBe(0)
        await waitUntilOnReplica(both, tenant)
        await standby.start()
        await expect.poll(() => both.metric(gaugeOf("up", standby)), poll).toBe(1)
      }
      const replies = await load.stop()
      expectStatuses(replies, 200)
    } finally {
      await both.stop()
    }
  })
})
