import type { IncomingMessage } from "node:http"
import * as Exit from "effect/Exit"
import {
  BodiesTooLarge,
  type BodyError,
  BodyIncomplete,
  BodyTooLarge
} from "../../contract/MountedEndpoint.ts"

/** Maximum memory of all bodies that have arrived and whose requests have no response yet, in bytes. */
const maxPendingBytes = 64 * 1024 * 1024
/** The approximate memory of a chunk besides its bytes. It counts because clients choose the number of chunks. */
const chunkOverheadBytes = 256
/** How long a body may take to arrive, in milliseconds. Less than the server's own limit for the whole request. */
const bodyTimeoutMs = 10_000
/** Receives a body, or the error that explains why there is none. Called once. */
type OnBody = (body: Exit.Exit<Uint8Array, BodyError>) => void

/** Reads the bodies of requests. They share a limit on memory. */
export class BodyReader {
  readonly #maxBodyBytes: number
  #pendingBytes = 0

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Reads the body of a request. Returns the function that releases its memory. */
  read(request: IncomingMessage, onBody: OnBody): () => void {
    const chunks: Array<Buffer> = []
    let bytes = 0
    let heldBytes = 0
    let isDone = false
    const finish = (body: Exit.Exit<Uint8Array, BodyError>): void => {
      if (isDone) return
      isDone = true
      clearTimeout(timer)
      onBody(body)
    }
    const onIncomplete = (): void => finish(Exit.fail(BodyIncomplete))
    const timer = setTimeout(onIncomplete, bodyTimeoutMs)
    request.on("data", (chunk: Buffer) => {
      // Read and drop the rest of an unused body, so that the response can be sent.
      if (isDone) return
      chunks.push(chunk)
      bytes += chunk.length
      heldBytes += chunk.length + chunkOverheadBytes
      this.#pendingBytes += chunk.length + chunkOverheadBytes
      if (bytes > this.#maxBodyBytes) finish(Exit.fail(BodyTooLarge))
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
