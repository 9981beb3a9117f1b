import { AbortError, isOutage, PromptClientError, RateLimitedError } from "../Errors.ts"
import { isKeyRejection } from "../transport/KeyStatus.ts"
import { type Signal, sleep } from "../transport/Limits.ts"

/** The progress of a prefetch. */
export interface PrefetchProgress {
  /** Number of prompts that are done, whether loaded or failed. */
  readonly done: number
  /** Number of prompts that failed. */
  readonly failed: number
  /** Total number of prompts. */
  readonly total: number
}

/** A prompt that `prefetch` could not load. */
export interface PrefetchFailure {
  /** The id or name that was selected. If the selection is a filter, the id of the prompt. */
  readonly id: string
  /** The error of the last request. */
  readonly error: PromptClientError
}

/** The outcome of a prefetch. */
export interface PrefetchResult {
  /** Number of prompts that are now in the cache. */
  readonly loaded: number
  /** The prompts that could not be loaded. */
  readonly failures: ReadonlyArray<PrefetchFailure>
}

interface PrefetchSettings {
  readonly concurrency: number
  readonly onProgress: ((progress: PrefetchProgress) => void) | undefined
  readonly signal: Signal
}

/** Runs a request. After each 429, waits for the time in `Retry-After` and runs the request again. */
export const respectRateLimit = async <A>(signal: Signal, request: () => Promise<A>): Promise<A> => {
  for (;;) {
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof RateLimitedError)) throw error
      await sleep(Math.min(Math.max(error.retryAfter ?? 1, 1), 60) * 1000, signal)
    }
  }
}

/**
 * Loads prompts, at most `concurrency` at a time. Rejects after a 401 or 403, and if the signal is aborted. After
 * `concurrency` outage errors without a loaded prompt in between, the remaining prompts fail without a request.
 */
export const loadAll = async (
  ids: ReadonlyArray<string>,
  load: (id: string) => Promise<unknown>,
  { concurrency, onProgress, signal }: PrefetchSettings
): Promise<PrefetchResult> => {
  const failures: Array<PrefetchFailure> = []
  let next = 0
  let done = 0
  let outageErrors = 0
  let isStopped = false
  const run = async () => {
    while (next < ids.length && !isStopped) {
      const id = ids[next++]!
      try {
        await respectRateLimit(signal, () => load(id))
        outageErrors = 0
      } catch (error) {
        const isFatal = !(error instanceof PromptClientError) || error instanceof AbortError
        if (isFatal || isKeyRejection(error)) throw error
        failures.push({ id, error })
        if (isOutage(error) && ++outageErrors >= concurrency) {
          failures.push(...ids.slice(next).map((id) => ({ id, error })))
          done += ids.length - next
          next = ids.length
        }
      }
      done++
      onProgress?.({ done, failed: failures.length, total: ids.length })
    }
  }
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, ids.length) }, run))
  } finally {
    // If one run throws, the other runs end after their current prompt.
    isStopped = true
  }
  return { loaded: ids.length - failures.length, failures }
}
