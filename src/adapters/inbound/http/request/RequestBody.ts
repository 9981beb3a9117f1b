import type { IncomingMessage } from "node:http"
import {
  BodiesTooLarge,
  type BodyError,
  BodyIncomplete,
  BodyTooLarge
} from "../../contract/MountedEndpoint.ts"

/** Maximum memory of all bodies together that have arrived and whose responses are not known, in bytes. */
const maxPendingBytes = 64 * 1024 * 1024
/** The approximate memory of a chunk besides its bytes: clients decide how many there are. */
const chunkOverheadBytes = 256
/** How long a body may take to arrive, in milliseconds. Less than the server's own limit for the whole request. */
const bodyTimeoutMs = 10_000
/** How often late bodies are looked for, in milliseconds. */
const sweepIntervalMs = 1_000

/** Receives a body, or the reason why there is none. Called once. */
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
      // The rest of a body that is not used is read, so that the response can be sent.
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
