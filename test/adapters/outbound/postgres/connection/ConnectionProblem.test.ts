import { createServer } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { findConnectionProblem } from "../../../../../src/adapters/outbound/postgres/connection/ConnectionProblem.ts"
import { listenOnFreePort } from "../../../../support/ports.ts"
import { toDatabaseUrl } from "../../../../support/postgres.ts"

/** Encodes the error message with which a server rejects a connection. */
const encodeError = (code: string, message: string): Buffer => {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const header = Buffer.from("E....")
  header.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([header, fields])
}

/** Starts a server that responds to each connection with an error. Returns the port of the server. */
const startServer = (code: string, message: string) =>
  listenOnFreePort(
    createServer((socket) => socket.once("data", () => socket.end(encodeError(code, message))))
  )

describe("findConnectionProblem", () => {
  for (const [code, message, problem] of [
    ["3D000", 'database "prompts" does not exist', "PostgreSQL rejected the connection of DATABASE_URL"],
    ["28000", 'role "ada" does not exist', "PostgreSQL rejected the connection of DATABASE_URL"],
    [
      "28P01",
      'password authentication failed for user "ada"',
      "PostgreSQL rejected the connection of DATABASE_URL"
    ],
    ["57P03", "the database system is starting up", "the database cannot be reached"]
  ] as const)
    it.live(
      `findConnectionProblem returns the message of PostgreSQL if the connection fails with ${code}`,
      () =>
        Effect.gen(function* () {
          const port = yield* startServer(code, message)
          const url = Redacted.make(`postgres://ada:s3cret@127.0.0.1:${port}/prompts`)
          assert.strictEqual(yield* findConnectionProblem(url), `${problem}: ${message}`)
        })
    )

  it.live("findConnectionProblem returns undefined for a server that accepts the connection", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* findConnectionProblem(Redacted.make(toDatabaseUrl("postgres"))))
    })
  )
})
