import type { IncomingMessage } from "node:http"
import { PassThrough } from "node:stream"
import { assert, it } from "@effect/vitest"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { BodiesTooLarge, type BodyError } from "../../../../../src/adapters/inbound/http/HttpMessage.ts"
import { BodyReader } from "../../../../../src/adapters/inbound/http/request/RequestBody.ts"

it("BodyReader limits the total memory of the chunks of all bodies, and a released body no longer counts", () => {
  const bodies = new BodyReader()
  const byte = Buffer.alloc(1)
  /** Reads a body that arrives byte by byte. */
  const read = (bytes: number) => {
    const received: Array<Exit.Exit<Uint8Array, BodyError>> = []
    const request = new PassThrough()
    const release = bodies.read(request as unknown as IncomingMessage, 1024 * 1024, (body) =>
      received.push(body)
    )
    for (let n = 0; n < bytes; n++) request.emit("data", byte)
    request.emit("end")
    return { received, release }
  }
  for (let round = 0; round < 2; round++) {
    const first = read(200_000)
    assert.strictEqual(Exit.getSuccess(first.received[0]!).pipe(Option.getOrThrow).length, 200_000)
    const second = read(100_000)
    assert.deepStrictEqual(second.received, [Exit.fail(BodiesTooLarge)])
    first.release()
    second.release()
  }
})
