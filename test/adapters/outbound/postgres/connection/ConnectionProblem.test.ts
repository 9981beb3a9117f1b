import { createServer } from "node:net"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { findConnectionProblem } from "../../../../../src/adapters/outbound/postgres/connection/DatabaseServer.ts"
import { listenOnFreePort } from "../../../../support/ports.ts"

/** Encodes the error message with which a server rejects a connection. */
const encodeError = (code: string, message: string): Buffer => {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`)
  const header = Buffer.from("E....")
  header.writeInt32BE(fields.length + 4, 1)
  return Buffer.concat([header, fields])
}

it.live.each([
  ["3D000", 'database "prompts" does not exist', "PostgreSQL rejected the connection of DATABASE_URL"],
  [
    "28P01",
    'password authentication failed for user "ada"',
    "PostgreSQL rejected the connection of DATABASE_URL"
  ],
  ["57P03", "the database system is starting up", "the database cannot be reached"]
] as const)(
  "findConnectionProblem returns the message of PostgreSQL if the connection fails with %s",
  ([code, message, problem]) =>
    Effect.gen(function* () {
      const port = yield* listenOnFreePort(
        createServer((socket) => socket.once("data", () => socket.end(encodeError(code, message))))
      )
      const url = Redacted.make(`postgres://ada:s3cret@127.0.0.1:${port}/prompts`)
      assert.strictEqual(yield* findConnectionProblem(url), `${problem}: ${message}`)
    })
)
