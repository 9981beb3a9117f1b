import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { makeDatabaseServer } from "../../../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makePoolConfig } from "../../../../../src/adapters/outbound/postgres/connection/PoolConfig.ts"
import { describeSqlError } from "../../../../../src/adapters/outbound/postgres/connection/SqlErrors.ts"
import { type Cluster, freshCluster, noCluster } from "../../../../support/cluster.ts"
import { makeResources } from "../../../../support/database.ts"
import { joinHosts } from "../../../../support/replicas.ts"

describe.skipIf(noCluster !== undefined)("the server that connections lead to", () => {
  const clusters = makeResources()
  let first: Cluster
  let second: Cluster
  beforeAll(async () => {
    first = await clusters.acquire(freshCluster)
    second = await clusters.acquire(freshCluster)
    await Promise.all([first.start(), second.start()])
  })
  afterAll(() => clusters.release())

  let resources = makeResources()
  afterEach(async () => {
    await resources.release()
    resources = makeResources()
  })

  type Server = ReturnType<typeof makeDatabaseServer>
  const connect = ({ config }: Server) =>
    resources.acquire(
      Effect.orDie(PgConnection.make(makePoolConfig({ url: Redacted.make("unused") }, config)))
    )
  const portOf = ({ url }: Cluster): string => new URL(url).port

  describe("with several hosts", () => {
    it("a URL without a password gives the driver none, as a URL of one host does", async () => {
      const { config } = makeDatabaseServer(Redacted.make(joinHosts([first, second])))
      const password = await Effect.runPromise(config.password as Effect.Effect<Redacted.Redacted>)
      expect(Redacted.value(password)).toBeUndefined()
    })

    it("a server that requires a password refuses a URL without one, and names the reason for each host", async () => {
      const asked = await resources.acquire(freshCluster)
      await asked.start()
      const administrator = await connect(makeDatabaseServer(Redacted.make(asked.url)))
      for (const statement of [
        "alter role postgres password 's3cret'",
        "copy (select 'host all all all scram-sha-256') to program 'cat > pg_hba.conf'",
        "select pg_reload_conf()"
      ])
        await Effect.runPromise(administrator.query(statement, [], false))
      const attempt = (url: string): Promise<string> => {
        const { config } = makeDatabaseServer(Redacted.make(url))
        return Effect.runPromise(
          PgConnection.make(makePoolConfig({ url: Redacted.make(url) }, config)).pipe(
            Effect.match({ onSuccess: () => "connected", onFailure: describeSqlError }),
            Effect.scoped
          )
        )
      }
      const reason = "The server requested password authentication"
      await expect.poll(() => attempt(asked.url)).toBe(reason)
      const several = joinHosts([asked, asked])
      const port = portOf(asked)
      expect(await attempt(several)).toBe(
        `no server meets target_session_attrs=any (127.0.0.1:${port}: ${reason}; 127.0.0.1:${port}: ${reason})`
      )
      for (const url of [asked.url, several])
        expect(await attempt(url.replace("postgres@", "postgres:s3cret@"))).toBe("connected")
    })
  })
})
