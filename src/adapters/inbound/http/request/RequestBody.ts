import type { IncomingMessage } from "node:http"
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
/** How often the timeouts of bodies are checked, in milliseconds. */
const sweepIntervalMs = 1_000

/** Receives a body, or the error that explains why there is none. Called once. */
type OnBody = (body: Uint8Array | BodyError) => void

/** Reads the bodies of requests. They share a limit on memory, and one timer. */
export class BodyReader {
  readonly #maxBodyBytes: number
  readonly #deadlines = new Map<() => void, number>()
  #pendingBytes = 0
  #sweeper: NodeJS.Timeout | undefined

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes
  }

  /** Reads the body of a request. Returns the function that releases its memory. */
  read(request: IncomingMessage, onBody: OnBody): () => void {
    const chunks: Array<Buffer> = []
    let bytes = 0
    let heldBytes = 0
    let isDone = false
    const finish = (body: Uint8Array | BodyError): void => {
      if (isDone) return
      isDone = true
      this.#deadlines.delete(onIncomplete)
      onBody(body)
    }
    const onIncomplete = (): void => finish(BodyIncomplete)
    this.#deadlines.set(onIncomplete, performance.now() + bodyTimeoutMs)
    this.#sweeper ??= setInterval(() => this.#sweep(), sweepIntervalMs).unref()
    request.on("data", (chunk: Buffer) => {
      // Read and drop the rest of an unused body, so that the response can be sent.
      if (isDone) return
      chunks.push(chunk)
      bytes += chunk.length
      heldBytes += chunk.length + chunkOverheadBytes
      this.#pendingBytes += chunk.length + chunkOverheadBytes
      if (bytes > this.#maxBodyBytes) finish(BodyTooLarge)
      else if (this.#pendingBytes > maxPendingBytes) finish(BodiesTooLarge)
    })
    request.on("end", () => {
      const [first] = chunks
      finish(chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks))
    })
    request.on("close", onIncomplete)
    return () => {
      this.#pendingBytes -= heldBytes
      chunks.length = 0
    }
  }

  #sweep(): void {
    const now = performance.now()
    for (const [onIncomplete, deadline] of this.#deadlines) if (deadline < now) onIncomplete()
    if (this.#deadlines.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}
