import { createServer } from "node:net"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import {
  findConnectionProblem,
  makeDatabaseServer
} from "../../../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { toDatabaseUrl } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"
import { listenOnFreePort } from "../../../../support/network/ports.ts"

makeTest(it.live)(
  "when a new connection leads to another server, DatabaseServer closes all connections, and then accepts connections to the new server",
  function* () {
    const server = makeDatabaseServer(Redacted.make(toDatabaseUrl("postgres")))
    const connect = PgConnection.make(server.config)
    const isOpen = (connection: PgConnection.PgConnection) =>
      Effect.map(Effect.exit(connection.query("select 1")), Exit.isSuccess)
    const connections = [yield* connect, yield* connect]
    yield* server.confirm({ server: "one" })
    yield* server.confirm({ server: "one" })
    assert.deepStrictEqual(yield* Effect.forEach(connections, isOpen), [true, true])

    connections.push(yield* connect)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(server.confirm({ server: "two" }))))
    assert.deepStrictEqual(yield* Effect.forEach(connections, isOpen), [false, false, false])

    const next = yield* connect
    yield* server.confirm({ server: "two" })
    assert.isTrue(yield* isOpen(next))
  }
)

/** Encodes the error message with which a server rejects a connection. */
const encodeError = (code: string, message: string): Buffer => {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const header = Buffer.from("E....")
  header.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([header, fields])
}

it.live.each([
  ["3D000", 'database "prompts" does not exist', "PostgreSQL rejected the connection of DATABASE_URL"],
  ["57P03", "the database system is starting up", "the database cannot be reached"]
] as const)(
  "findConnectionProblem returns the message of PostgreSQL if the connection fails with the error code %s",
  ([code, message, problem]) =>
    Effect.gen(function* () {
      const port = yield* listenOnFreePort(
        createServer((socket) => socket.once("data", () => socket.end(encodeError(code, message))))
      )
      const url = Redacted.make(`postgres://ada:s3cret@127.0.0.1:${port}/prompts`)
      assert.strictEqual(yield* findConnectionProblem(url), `${problem}: ${message}`)
    })
)
