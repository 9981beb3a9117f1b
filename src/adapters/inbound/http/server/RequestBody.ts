import type { IncomingMessage } from "node:http"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { RequestTimeout } from "../../contract/Errors.ts"
import { type BodyError, type BodyLimits, BodyTooLarge, WorkspaceShares } from "../HttpMessage.ts"

/** Maximum memory of the bodies of all requests that have no response yet, in bytes. */
const maxHeldBytes = 32 * 1024 * 1024
/** The memory that the first chunk of a body takes, in bytes. When a body outgrows its memory, the memory doubles. */
const minCapacity = 4 * 1024
/** Maximum number of chunks of a body. Node runs JavaScript for each chunk, however small the chunk is. */
const maxChunks = 4_096
/** How long a body may take to arrive, in milliseconds. The limit for the whole request is longer. */
const bodyTimeoutMs = 10_000

/** Receives a body, or the error that prevented the read. `BodyReader` calls the function once. */
type OnBody = (body: Exit.Exit<Uint8Array, BodyError>) => void

/** Reads the bodies of requests. One limit applies to the memory of all bodies, with a share for each workspace. */
export class BodyReader {
  readonly #shares = new WorkspaceShares(maxHeldBytes)

  /**
   * Reads the body of a request. Returns the function that releases the memory of the body, even if the body is not
   * complete. A body is empty once its memory is released.
   */
  read(request: IncomingMessage, { workspace, maxBytes }: BodyLimits, onBody: OnBody): () => void {
    let memory = new ArrayBuffer(0)
    let bytes = 0
    let chunks = 0
    let isDone = false
    const resize = (capacity: number): void => {
      this.#shares.add(workspace, capacity - memory.byteLength)
      memory = memory.transfer(capacity)
    }
    const finish = (body: Exit.Exit<Uint8Array, BodyError>): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      if (Exit.isFailure(body)) {
        request.pause()
        bytes = 0
        resize(0)
      }
      onBody(body)
    }
    const onIncomplete = (): void => finish(Exit.fail(RequestTimeout))
    const timer = setTimeout(onIncomplete, bodyTimeoutMs)
    request.on("data", (chunk: Buffer) => {
      // Drops the chunks that still arrive after an error.
      if (isDone) return
      const length = bytes + chunk.length
      if (length > maxBytes || ++chunks > maxChunks) return finish(Exit.fail(BodyTooLarge))
      if (length > memory.byteLength) {
        let capacity = Math.max(2 * memory.byteLength, minCapacity)
        while (capacity < length) capacity *= 2
        if (!this.#shares.hasRoom(workspace, capacity - memory.byteLength))
          return finish(Exit.fail(Unavailable))
        resize(capacity)
      }
      chunk.copy(new Uint8Array(memory), bytes)
      bytes = length
    })
    request.on("end", () => finish(Exit.succeed(new Uint8Array(memory, 0, bytes))))
    request.on("close", onIncomplete)
    return () => {
      onIncomplete()
      resize(0)
    }
  }
}
