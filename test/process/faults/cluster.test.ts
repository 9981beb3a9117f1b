import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { type Cluster, freshCluster, noCluster } from "../../support/cluster.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import { startObserved } from "../../support/observed.ts"
import {
  ask,
  expectBystandersUnaffected,
  expectInvariant,
  fresh,
  type Outcome,
  untilAnswered
} from "../../support/outcomes.ts"
import type { Service } from "../../support/service.ts"

/** How soon the service recovers once PostgreSQL answers again (DESIGN.md section 8), in milliseconds. */
const recovery = 2_000

describe.skipIf(noCluster !== undefined)("a PostgreSQL server that goes and comes back", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const authorization = `Bearer ${keys.active.plaintext}`
  const path = "/api/v1/prompts?per_page=1"
  let cluster: Cluster
  let env: Record<string, string>
  let service: Service

  const reads = (count: number): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(Array.from({ length: count }, () => ask(service, fresh(path), authorization)))

  beforeAll(async () => {
    cluster = await resources.acquire(freshCluster)
    env = { DATABASE_URL: cluster.url, RATE_LIMIT_PER_KEY: "1000000", RATE_LIMIT_PER_PROCESS: "1000000" }
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  it("absent at the start: the service listens, and is ready within 2 s of the database", async () => {
    service = await startObserved(env, "/healthz")
    expectInvariant(await reads(5), ["SERVICE_UNAVAILABLE"])
    expectInvariant([await ask(service, "/readyz")], ["SERVICE_UNAVAILABLE"])
    await expectBystandersUnaffected(service)
    await cluster.start()
    const there = performance.now()
    await expect
      .poll(async () => (await fetch(`${service.url}/readyz`)).status, { timeout: 10_000, interval: 10 })
      .toBe(200)
    expect(performance.now() - there).toBeLessThan(recovery)
    await (await resources.acquire(connectTo(env))).importArchive(archive)
    expect((await reads(1))[0]!.status).toBe(200)
  })

  it("stopped immediately and started", async () => {
    const before = reads(30)
    await cluster.stop()
    expectInvariant(await before, ["data", "SERVICE_UNAVAILABLE"])
    const during = await reads(30)
    expectInvariant(during, ["SERVICE_UNAVAILABLE"])
    expect((await ask(service, "/readyz")).status).toBe(503)
    await expectBystandersUnaffected(service)
    await cluster.start()
    expect(await untilAnswered(service, path, authorization)).toBeLessThan(recovery)
    expect((await reads(30)).map(({ status }) => status)).toEqual(Array(30).fill(200))
  })

  it("frozen and continued", async () => {
    cluster.freeze()
    const during = reads(60)
    await setTimeout(500)
    await expectBystandersUnaffected(service)
    expectInvariant(await during, ["SERVICE_UNAVAILABLE"])
    // Those who come later meet connections that are given up, and new ones that nobody answers.
    expectInvariant([...(await reads(10)), await ask(service, "/readyz")], ["SERVICE_UNAVAILABLE"])
    await expectBystandersUnaffected(service)
    cluster.thaw()
    expect(await untilAnswered(service, path, authorization)).toBeLessThan(recovery)
    expect((await reads(60)).map(({ status }) => status)).toEqual(Array(60).fill(200))
  })

  it("frozen: the process still ends when it is told to, and says 503 until then", async () => {
    const other = await startObserved(env)
    expect((await ask(other, path, authorization)).status).toBe(200)
    cluster.freeze()
    const underWay = ask(other, fresh(path), authorization)
    await setTimeout(100)
    const told = performance.now()
    expect(await other.stop()).toBe(0)
    expect(performance.now() - told).toBeLessThan(12_000)
    expectInvariant([await underWay], ["SERVICE_UNAVAILABLE"])
    cluster.thaw()
    await untilAnswered(service, path, authorization)
  })
})
