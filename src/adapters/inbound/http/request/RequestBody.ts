import type { IncomingMessage } from "node:http"
import * as Exit from "effect/Exit"
import { BodiesTooLarge, type BodyError, BodyIncomplete, BodyTooLarge } from "../HttpMessage.ts"

/** Maximum memory of the bodies of all requests that have no response yet, in bytes. */
const maxPendingBytes = 64 * 1024 * 1024
/**
 * The approximate memory of a chunk in addition to its bytes. `maxPendingBytes` includes this memory, because a client
 * can send a body in many small chunks.
 */
const chunkOverheadBytes = 256
/** How long a body may take to arrive, in milliseconds. The limit for the whole request is longer. */
const bodyTimeoutMs = 10_000
/** Receives a body, or the error of a body that could not be read. Is called once. */
type OnBody = (body: Exit.Exit<Uint8Array, BodyError>) => void

/** Reads the bodies of requests. One limit applies to the memory of all bodies together. */
export class BodyReader {
  #pendingBytes = 0

  /**
   * Reads the body of a request, which may have at most `maxBytes` bytes. Returns the function that releases the memory
   * of the body.
   */
  read(request: IncomingMessage, maxBytes: number, onBody: OnBody): () => void {
    const chunks: Array<Buffer> = []
    let bytes = 0
    let heldBytes = 0
    let isDone = false
    const finish = (body: Exit.Exit<Uint8Array, BodyError>): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      if (Exit.isFailure(body)) request.pause()
      onBody(body)
    }
    const onIncomplete = (): void => finish(Exit.fail(BodyIncomplete))
    const timer = setTimeout(onIncomplete, bodyTimeoutMs)
    request.on("data", (chunk: Buffer) => {
      // Drops the chunks that still arrive after an error.
      if (isDone) return
      chunks.push(chunk)
      bytes += chunk.length
      heldBytes += chunk.length + chunkOverheadBytes
      this.#pendingBytes += chunk.length + chunkOverheadBytes
      if (bytes > maxBytes) finish(Exit.fail(BodyTooLarge))
      else if (this.#pendingBytes > maxPendingBytes) finish(Exit.fail(BodiesTooLarge))
    })
    request.on("end", () => {
      const [first] = chunks
      finish(Exit.succeed(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks)))
    })
    request.on("close", onIncomplete)
    return () => {
      this.#pendingBytes -= heldBytes
      chunks.length = 0
    }
  }
}
