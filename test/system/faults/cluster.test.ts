import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import {
  expectBystandersUnaffected,
  expectCodes,
  type Outcome,
  send,
  uncachedPath,
  waitUntilOk
} from "../../support/clients/requests.ts"
import { type Service, startService, unlimited } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"

describe("a PostgreSQL server that fails and recovers", () => {
  const resources = makeResources()
  const { archive, keys } = sample()
  const authorization = `Bearer ${keys.active.plaintext}`
  const path = "/api/v1/prompts?per_page=1"
  let cluster: Cluster
  let env: Record<string, string>
  let service: Service

  const makeEnv = ({ url }: Cluster) => ({
    DATABASE_URL: url,
    OUTAGE_MAX_AGE: "0 seconds",
    ...unlimited
  })
  const sendReads = (count: number, of = service): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(Array.from({ length: count }, () => send(of, uncachedPath(path), authorization)))

  beforeAll(async () => {
    cluster = await resources.acquire(freshCluster)
    await cluster.start()
    env = makeEnv(cluster)
    service = await startObservedService(env)
    await (await resources.acquire(connectTo(env))).importArchive(archive)
  })
  afterAll(async () => {
    await service?.stop()
    await resources.release()
  })

  it("a service that starts without PostgreSQL listens, and is ready once PostgreSQL has started", async () => {
    const absent = await resources.acquire(freshCluster)
    const env = makeEnv(absent)
    const waiting = await startObservedService(env, "/healthz")
    try {
      expectCodes(await sendReads(5, waiting), ["SERVICE_UNAVAILABLE"])
      expectCodes([await send(waiting, "/readyz")], ["SERVICE_UNAVAILABLE"])
      await expectBystandersUnaffected(waiting)
      await absent.start()
      await expect.poll(async () => (await send(waiting, "/readyz")).status).toBe(200)
      await (await resources.acquire(connectTo(env))).importArchive(archive)
      expect((await sendReads(1, waiting))[0]!.status).toBe(200)
    } finally {
      await waiting.stop()
    }
  })

  it("reads get 503 while PostgreSQL is stopped, and get data after its restart", async () => {
    const inFlight = sendReads(30)
    await cluster.stop()
    expectCodes(await inFlight, ["data", "SERVICE_UNAVAILABLE"])
    const during = await sendReads(30)
    expectCodes(during, ["SERVICE_UNAVAILABLE"])
    expect((await send(service, "/readyz")).status).toBe(503)
    await expectBystandersUnaffected(service)
    await cluster.start()
    await waitUntilOk(service, path, authorization)
    expect((await sendReads(30)).map(({ status }) => status)).toEqual(Array(30).fill(200))
  })

  it("while PostgreSQL is frozen, SIGTERM ends the process, and in-flight requests get 503", async () => {
    const other = await startService(env)
    expect((await send(other, path, authorization)).status).toBe(200)
    cluster.freeze()
    const inFlight = send(other, uncachedPath(path), authorization)
    await setTimeout(100)
    other.process.kill("SIGTERM")
    // The connections to the frozen server stay open until the process exits.
    expect(await once(other.process, "exit")).toEqual([0, null])
    expectCodes([await inFlight], ["SERVICE_UNAVAILABLE"])
    cluster.thaw()
    await waitUntilOk(service, path, authorization)
  })
})
