import type { ConnectionLimits } from "./ConnectionLimits.ts"
import type { SocketHandle } from "./NodeInternals.ts"

/** Measures how fast the client of one connection receives the bytes that wait for it. Times are in milliseconds. */
export class ReaderProgress {
  /** The number of bytes that the kernel had accepted at the last check; undefined if no bytes were waiting. */
  #acceptedBytes: number | undefined = undefined
  #unsentSince = 0
  /** When a check last found that the client had received something. */
  #progressAt = 0
  /** How much longer the client may go without reading, in milliseconds. */
  #stallBudgetMs = 0

  /** Forgets the progress, because no bytes are waiting for the client. */
  reset(): void {
    this.#acceptedBytes = undefined
  }

  /**
   * Measures the progress since the last check. Returns false if the client receives its responses too slowly, or not
   * at all, and must be disconnected.
   */
  check(handle: SocketHandle, limits: ConnectionLimits, now: number, elapsedMs: number): boolean {
    const { stallTimeoutMs, maxStallTimeoutMs, socketFillMs, slowReaderBytesPerSecond } = limits
    const acceptedBytes = handle.bytesWritten - handle.writeQueueSize
    if (this.#acceptedBytes === undefined) {
      this.#stallBudgetMs = stallTimeoutMs
      this.#unsentSince = now
      this.#progressAt = now
    } else {
      const progressBytes = acceptedBytes - this.#acceptedBytes
      if (progressBytes > 0) this.#progressAt = now
      const earnedMs = (progressBytes / slowReaderBytesPerSecond) * 1_000
      // At first the kernels' socket buffers accept bytes, even if the client does not read.
      const isFilling = now - this.#unsentSince < socketFillMs
      const maxStallBudgetMs = isFilling ? stallTimeoutMs : maxStallTimeoutMs
      this.#stallBudgetMs = Math.min(this.#stallBudgetMs - elapsedMs + earnedMs, maxStallBudgetMs)
    }
    this.#acceptedBytes = acceptedBytes
    return this.#stallBudgetMs > 0
  }

  /** Returns true if bytes wait for the client and the client has read none for longer than `milliseconds`. */
  hasStalled(now: number, milliseconds: number): boolean {
    return this.#acceptedBytes !== undefined && now - this.#progressAt > milliseconds
  }
}
