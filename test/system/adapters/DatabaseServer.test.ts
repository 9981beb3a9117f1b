import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { afterAll, describe, expect, it } from "vitest"
import { makeDatabaseServer } from "../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makeSetUpSession } from "../../../src/adapters/outbound/postgres/connection/SessionSetup.ts"
import { type Cluster, freshCluster } from "../../support/database/cluster.ts"
import { balanceServers } from "../../support/database/failover.ts"
import { makeResources } from "../../support/database.ts"

describe("connections behind HAProxy in TCP mode", () => {
  const resources = makeResources()
  afterAll(() => resources.release())

  type Server = ReturnType<typeof makeDatabaseServer>
  const connect = (server: Server) => resources.acquire(Effect.orDie(PgConnection.make(server.config)))
  /** Sets up the session of a connection. Returns false if the setup fails. */
  const setUp = (server: Server, connection: PgConnection.PgConnection): Promise<boolean> =>
    Effect.runPromise(Effect.map(Effect.exit(makeSetUpSession(server)(connection)), Exit.isSuccess))
  /** Returns the port of the server that a connection leads to, or `undefined` if the connection is closed. */
  const findPort = (connection: PgConnection.PgConnection): Promise<unknown> =>
    Effect.runPromise(
      Effect.match(connection.query("select current_setting('port') as port", [], false), {
        onSuccess: ({ rows }) => rows[0]!.port,
        onFailure: () => undefined
      })
    )
  const portOf = ({ url }: Cluster): string => new URL(url).port

  it("the first connection to a different server closes all connections, including itself, and later connections are accepted", async () => {
    const [first, second] = [await resources.acquire(freshCluster), await resources.acquire(freshCluster)]
    await Promise.all([first.start(), second.start()])
    const haproxy = await resources.acquire(balanceServers(first, second))
    const server = makeDatabaseServer(Redacted.make(haproxy.url))
    const confirmed = await connect(server)
    expect(await setUp(server, confirmed)).toBe(true)
    expect(await setUp(server, await connect(server))).toBe(true)
    // The connections for transactions are never set up.
    const unconfirmed = await connect(server)
    expect(await Promise.all([confirmed, unconfirmed].map(findPort))).toEqual([portOf(first), portOf(first)])

    await haproxy.switchOver()
    expect(await Promise.all([confirmed, unconfirmed].map(findPort))).toEqual([portOf(first), portOf(first)])
    const newcomer = await connect(server)
    expect(await findPort(newcomer)).toBe(portOf(second))
    expect(await setUp(server, newcomer)).toBe(false)
    expect(await Promise.all([confirmed, unconfirmed, newcomer].map(findPort))).toEqual(
      Array(3).fill(undefined)
    )

    const next = await connect(server)
    expect(await setUp(server, next)).toBe(true)
    expect(await findPort(next)).toBe(portOf(second))
  })
})
