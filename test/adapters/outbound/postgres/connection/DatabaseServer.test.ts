import * as PgConnection from "@effect/sql-pg/PgConnection"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { makeDatabaseServer } from "../../../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { makeTest } from "../../../../support/makeTest.ts"
import { toDatabaseUrl } from "../../../../support/postgres.ts"

makeTest(it.live)(
  "the first connection that leads to another server closes all connections, including itself, and later connections are accepted",
  function* () {
    const server = makeDatabaseServer(Redacted.make(toDatabaseUrl("postgres")))
    const connect = PgConnection.make(server.config)
    const isOpen = (connection: PgConnection.PgConnection) =>
      Effect.map(Effect.exit(connection.query("select 1")), Exit.isSuccess)
    const connections = [yield* connect, yield* connect]
    yield* server.confirm("one")
    yield* server.confirm("one")
    assert.deepStrictEqual(yield* Effect.forEach(connections, isOpen), [true, true])

    connections.push(yield* connect)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(server.confirm("two"))))
    assert.deepStrictEqual(yield* Effect.forEach(connections, isOpen), [false, false, false])

    const next = yield* connect
    yield* server.confirm("two")
    assert.isTrue(yield* isOpen(next))
  }
)
