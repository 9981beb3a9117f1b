import type { IncomingMessage } from "node:http"
import { PassThrough } from "node:stream"
import { assert, it } from "@effect/vitest"
import * as Exit from "effect/Exit"
import type { BodyError } from "../../../../../src/adapters/inbound/http/HttpMessage.ts"
import { BodyReader } from "../../../../../src/adapters/inbound/http/server/RequestBody.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"
import { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"

const MiB = 1024 * 1024
const first = WorkspaceId.make(crypto.randomUUID())
const second = WorkspaceId.make(crypto.randomUUID())

/** Reads a body that consists of these chunks, with a limit of 1 MiB. */
const read = (bodies: BodyReader, chunks: ReadonlyArray<Uint8Array>, workspace = first) => {
  const received: Array<Exit.Exit<Uint8Array, BodyError>> = []
  const request = new PassThrough()
  const limits = { maxBytes: MiB, workspace }
  const release = bodies.read(request as unknown as IncomingMessage, limits, (body) => received.push(body))
  for (const chunk of chunks) request.emit("data", Buffer.from(chunk))
  request.emit("end")
  assert.strictEqual(received.length, 1)
  return { body: received[0]!, release }
}
const readBytes = (bodies: BodyReader, bytes: number, workspace = first) =>
  read(bodies, [new Uint8Array(bytes)], workspace)

it("BodyReader returns the bytes of all chunks in their order", () => {
  const chunks = Array.from({ length: 4_000 }, (_, index) => Buffer.from(`${index},`))
  const { body, release } = read(new BodyReader(), chunks)
  assert.deepStrictEqual(body, Exit.succeed(new Uint8Array(Buffer.concat(chunks))))
  release()
})

it("until bodies are released, BodyReader accepts at most 16 MiB of bodies of one workspace, and then 8 MiB of another workspace", () => {
  const bodies = new BodyReader()
  for (let n = 0; n < 100; n++) {
    readBytes(bodies, MiB + 1)
    readBytes(bodies, MiB).release()
  }
  for (let n = 0; n < 16; n++) assert.isTrue(Exit.isSuccess(readBytes(bodies, MiB).body))
  assert.deepStrictEqual(readBytes(bodies, 1).body, Exit.fail(Unavailable))
  for (let n = 0; n < 8; n++) assert.isTrue(Exit.isSuccess(readBytes(bodies, MiB, second).body))
  assert.deepStrictEqual(readBytes(bodies, 1, second).body, Exit.fail(Unavailable))
})
