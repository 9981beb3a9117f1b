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

  const sendReads = (service: Service): Promise<ReadonlyArray<Outcome>> =>
    Promise.all(Array.from({ length: 30 }, () => send(service, uncachedPath(path), authorization)))

  beforeAll(async () => {
    cluster = await resources.acquire(freshCluster)
    env = { DATABASE_URL: cluster.url, OUTAGE_MAX_AGE: "0 seconds", ...unlimited }
  })
  afterAll(() => resources.release())

  it("a service starts without PostgreSQL, serves once PostgreSQL runs, and responds 503 while PostgreSQL is stopped", async () => {
    const service = await startObservedService(env, "/healthz")
    try {
      const expectUnavailable = async () => {
        expectCodes(await sendReads(service), ["SERVICE_UNAVAILABLE"])
        expectCodes([await send(service, "/readyz")], ["SERVICE_UNAVAILABLE"])
        await expectBystandersUnaffected(service)
      }
      await expectUnavailable()
      await cluster.start()
      await expect.poll(async () => (await send(service, "/readyz")).status).toBe(200)
      await (await resources.acquire(connectTo(env))).importArchive(archive)
      const inFlight = sendReads(service)
      await cluster.stop()
      expectCodes(await inFlight, ["data", "SERVICE_UNAVAILABLE"])
      await expectUnavailable()
      await cluster.start()
      await waitUntilOk(service, path, authorization)
      expect((await sendReads(service)).map(({ status }) => status)).toEqual(Array(30).fill(200))
    } finally {
      await service.stop()
    }
  })

  it("while PostgreSQL is frozen, SIGTERM ends the process, and in-flight requests get 503", async () => {
    const service = await startService(env)
    expect((await send(service, path, authorization)).status).toBe(200)
    cluster.freeze()
    const inFlight = send(service, uncachedPath(path), authorization)
    await setTimeout(100)
    service.process.kill("SIGTERM")
    // The connections to the frozen server stay open until the process exits.
    expect(await once(service.process, "exit")).toEqual([0, null])
    expectCodes([await inFlight], ["SERVICE_UNAVAILABLE"])
    cluster.thaw()
  })
})
