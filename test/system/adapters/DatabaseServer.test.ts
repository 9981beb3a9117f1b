import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { makeDatabaseServer } from "../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makePoolConfig } from "../../../src/adapters/outbound/postgres/connection/PoolConfig.ts"
import { makeSetUpSession } from "../../../src/adapters/outbound/postgres/connection/SessionSetup.ts"
import { describeSqlError } from "../../../src/adapters/outbound/postgres/connection/SqlErrors.ts"
import { type Cluster, freshCluster } from "../../support/cluster.ts"
import { makeResources } from "../../support/database.ts"
import { balanceServers } from "../../support/failover.ts"
import { joinHosts } from "../../support/replicas.ts"

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
  const confirm = (server: Server, connection: PgConnection.PgConnection): Promise<boolean> =>
    Effect.runPromise(Effect.map(Effect.exit(makeSetUpSession(server)(connection)), Exit.isSuccess))
  /** Returns the port of the server that a connection leads to; `undefined` if the connection is closed. */
  const findPort = (connection: PgConnection.PgConnection): Promise<unknown> =>
    Effect.runPromise(
      Effect.match(connection.query("select current_setting('port') as port", [], false), {
        onSuccess: ({ rows }) => rows[0]!.port,
        onFailure: () => undefined
      })
    )
  const portOf = ({ url }: Cluster): string => new URL(url).port

  describe("behind HAProxy in TCP mode, when HAProxy leads to another server", () => {
    const startBalanced = async () => {
      const haproxy = await resources.acquire(balanceServers({ primary: first, standby: second }))
      return { haproxy, server: makeDatabaseServer(Redacted.make(haproxy.url)) }
    }

    it("a connection to the earlier server that is confirmed after the change is refused, and nothing else is closed", async () => {
      const { haproxy, server } = await startBalanced()
      expect(await confirm(server, await connect(server))).toBe(true)
      const late = await connect(server)
      expect(await findPort(late)).toBe(portOf(first))
      await haproxy.switchOver()
      const current = await connect(server)
      expect(await confirm(server, current)).toBe(true)

      let changes = 0
      server.onChange(() => changes++)
      expect(await confirm(server, late)).toBe(false)
      expect(await confirm(server, await connect(server))).toBe(true)
      expect(await findPort(current)).toBe(portOf(second))
      expect(changes).toBe(0)
    })

    it("every confirmed connection to the earlier server is closed, and every connection that is never confirmed", async () => {
      const { haproxy, server } = await startBalanced()
      const confirmed = await connect(server)
      expect(await confirm(server, confirmed)).toBe(true)
      const other = await connect(server)
      expect(await confirm(server, other)).toBe(true)
      const unconfirmed = await connect(server, server.unconfirmedConfig)
      expect(await findPort(unconfirmed)).toBe(portOf(first))
      await haproxy.switchOver()
      let changes = 0
      server.onChange(() => changes++)
      expect(await confirm(server, await connect(server))).toBe(true)
      expect(changes).toBe(1)
      expect(await Promise.all([confirmed, other, unconfirmed].map(findPort))).toEqual(
        Array(3).fill(undefined)
      )
    })
  })

  describe("with several hosts", () => {
    it("a connection to the earlier server that is confirmed after the change is refused", async () => {
      const server = makeDatabaseServer(Redacted.make(joinHosts([first, second])))
      const late = await connect(server)
      expect(await findPort(late)).toBe(portOf(first))
      try {
        // The selection gets no response, while open connections stay.
        first.freeze()
        const current = await connect(server)
        expect(await confirm(server, current)).toBe(true)
        first.thaw()
        expect(await confirm(server, late)).toBe(false)
        expect(await findPort(current)).toBe(portOf(second))
      } finally {
        first.thaw()
      }
    })

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
