import type { ConnectionLimits } from "./ConnectionLimits.ts"
import type { SocketHandle } from "./NodeInternals.ts"

/** Measures how fast the client of one connection takes the bytes that wait for it. Times are in milliseconds. */
export class ReaderProgress {
  /** The bytes that the kernel had accepted at the last check; undefined if none were left to accept. */
  #takenBytes: number | undefined = undefined
  #unsentSince = 0
  /** When a check last saw that the client had taken something. */
  #progressAt = 0
  /** How much longer the client may read nothing. */
  #patienceMs = 0

  /** Forgets the progress, because no bytes are left to take. */
  reset(): void {
    this.#takenBytes = undefined
  }

  /**
   * Measures the progress since the last check. Returns false if the client takes its responses too slowly, or not at
   * all, and must be disconnected.
   */
  check(handle: SocketHandle, limits: ConnectionLimits, now: number, elapsedMs: number): boolean {
    const { stallTimeoutMs, maxStallTimeoutMs, socketFillMs, slowReaderBytesPerSecond } = limits
    const takenBytes = handle.bytesWritten - handle.writeQueueSize
    if (this.#takenBytes === undefined) {
      this.#patienceMs = stallTimeoutMs
      this.#unsentSince = now
      this.#progressAt = now
    } else {
      const progressBytes = takenBytes - this.#takenBytes
      if (progressBytes > 0) this.#progressAt = now
      const earnedMs = (progressBytes / slowReaderBytesPerSecond) * 1_000
      // At first the kernels' socket buffers accept bytes, even if the client does not read.
      const isFilling = now - this.#unsentSince < socketFillMs
      const maxPatienceMs = isFilling ? stallTimeoutMs : maxStallTimeoutMs
      this.#patienceMs = Math.min(this.#patienceMs - elapsedMs + earnedMs, maxPatienceMs)
    }
    this.#takenBytes = takenBytes
    return this.#patienceMs > 0
  }

  /** Returns true if bytes wait for the client and the client has read none for longer than `milliseconds`. */
  hasStalled(now: number, milliseconds: number): boolean {
    return this.#takenBytes !== undefined && now - this.#progressAt > milliseconds
  }
}
