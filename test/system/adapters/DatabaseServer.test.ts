import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { makeDatabaseServer } from "../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makePoolConfig } from "../../../src/adapters/outbound/postgres/driver/PoolConfig.ts"
import {
  makeSetUpSession,
  serverIdentity
} from "../../../src/adapters/outbound/postgres/connection/SessionSetup.ts"
import { describeSqlError } from "../../../src/adapters/outbound/postgres/driver/SqlErrors.ts"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { makeResources } from "../../support/database.ts"
import { balanceServers } from "../../support/database/failover.ts"
import { joinHosts } from "../../support/database/replicas.ts"

describe("the server that connections lead to", () => {
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
  const connect = (server: Server, config = server.config) =>
    resources.acquire(Effect.orDie(PgConnection.make(makePoolConfig(config))))
  const setUp = (server: Server, connection: PgConnection.PgConnection): Promise<boolean> =>
    Effect.runPromise(Effect.map(Effect.exit(makeSetUpSession(server)(connection)), Exit.isSuccess))
  /** Connects like the change feed. From then on, only the server of this connection is accepted. */
  const follow = async (server: Server): Promise<void> => {
    const connection = await connect(server, server.feedConfig)
    const { rows } = await Effect.runPromise(
      connection.query(`select ${serverIdentity} as server`, [], false)
    )
    await Effect.runPromise(server.follow(rows[0]!.server as string))
  }
  /** Returns the port of the server that a connection leads to, or `undefined` if the connection is closed. */
  const findPort = (connection: PgConnection.PgConnection): Promise<unknown> =>
    Effect.runPromise(
      Effect.match(connection.query("select current_setting('port') as port", [], false), {
        onSuccess: ({ rows }) => rows[0]!.port,
        onFailure: () => undefined
      })
    )
  const portOf = ({ url }: Cluster): string => new URL(url).port

  describe("connections behind HAProxy in TCP mode, when HAProxy switches to another server", () => {
    const startBalanced = async () => {
      const haproxy = await resources.acquire(balanceServers({ primary: first, standby: second }))
      return { haproxy, server: makeDatabaseServer(Redacted.make(haproxy.url)) }
    }

    it("if a connection leads to a different server than the change feed, the connection is rejected, and all connections are closed", async () => {
      const { haproxy, server } = await startBalanced()
      await follow(server)
      const reads = await connect(server)
      expect(await setUp(server, reads)).toBe(true)
      const transactions = await connect(server)
      await haproxy.switchOver()
      const serverMismatch = Effect.runPromise(server.serverMismatch)
      const current = await connect(server)
      expect(await findPort(current)).toBe(portOf(second))
      expect(await setUp(server, current)).toBe(false)
      await serverMismatch
      expect(await Promise.all([reads, transactions, current].map(findPort))).toEqual(
        Array(3).fill(undefined)
      )
      // Until the change feed is up again, connections to any server are accepted.
      expect(await setUp(server, await connect(server))).toBe(true)
    })

    it("when the change feed is up again, connections stay open only if all of them lead to the server of the feed", async () => {
      const { haproxy, server } = await startBalanced()
      await follow(server)
      const early = await connect(server)
      await Effect.runPromise(server.unfollow)
      await follow(server)
      expect(await findPort(early)).toBe(portOf(first))

      await Effect.runPromise(server.unfollow)
      await haproxy.switchOver()
      const late = await connect(server)
      expect(await setUp(server, late)).toBe(true)
      await follow(server)
      expect(await Promise.all([early, late].map(findPort))).toEqual([undefined, undefined])
      expect(await findPort(await connect(server))).toBe(portOf(second))
    })
  })

  describe("connections with several hosts in the URL", () => {
    it("with several hosts, connections lead to the first host that responds, but while the change feed is up, to the server of the feed", async () => {
      const server = makeDatabaseServer(Redacted.make(joinHosts([first, second])))
      try {
        first.freeze()
        await follow(server)
      } finally {
        first.thaw()
      }
      expect(await findPort(await connect(server))).toBe(portOf(second))
      await Effect.runPromise(server.unfollow)
      expect(await findPort(await connect(server))).toBe(portOf(first))
    })

    it("if the URL lacks a required password, the connection fails and the error names the reason for each host", async () => {
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
          PgConnection.make(makePoolConfig(config)).pipe(
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
