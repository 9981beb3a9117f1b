import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, describe, expect, it } from "vitest"
import { makeReplicaSessionSetup } from "../../../src/adapters/outbound/postgres/replica/Replica.ts"
import { decodeStandby, selectStandby } from "../../../src/adapters/outbound/postgres/replica/ServerState.ts"
import { type Cluster, freshCluster, makeStandby } from "../../support/database/cluster.ts"
import { makeResources } from "../../support/database.ts"

describe("sessions on a replica", () => {
  const resources = makeResources()
  afterAll(() => resources.release())

  const connect = (url: string) =>
    resources.acquire(Effect.orDie(PgConnection.make({ url: Redacted.make(url), multiplex: true })))

  it("the setup of a session accepts the standby under each of its addresses, and rejects every other server", async () => {
    const primary = await resources.acquire(freshCluster)
    await primary.start()
    const startStandby = async (): Promise<Cluster> => {
      const standby = await resources.acquire(makeStandby(primary))
      await standby.start(["listen_addresses=127.0.0.1,127.0.0.2"])
      return standby
    }
    const [standby, other] = [await startStandby(), await startStandby()]
    const first = await connect(standby.url)
    const state = decodeStandby((await Effect.runPromise(first.query(selectStandby, [], false))).rows)
    const setUp = makeReplicaSessionSetup(() => state!)
    const isAccepted = async (url: string) =>
      Effect.runPromise(
        Effect.match(setUp(await connect(url)), { onSuccess: () => true, onFailure: () => false })
      )
    expect(await isAccepted(standby.url)).toBe(true)
    expect(await isAccepted(standby.url.replace("127.0.0.1", "127.0.0.2"))).toBe(true)
    expect(await isAccepted(other.url)).toBe(false)
    expect(await isAccepted(primary.url)).toBe(false)
  })
})
