import { AbortError, TimeoutError } from "../Errors.ts"

/** The part of `AbortSignal` that the client uses. */
export interface SignalLike {
  /** True once the signal is aborted. */
  readonly aborted: boolean
  /** The reason of the abort. */
  readonly reason: unknown
  /** Adds a listener that is called when the signal is aborted. */
  addEventListener(type: "abort", listener: () => void): void
  /** Removes a listener. */
  removeEventListener(type: "abort", listener: () => void): void
}

/** The platform's `AbortSignal`, or `SignalLike` in projects without the DOM's or Node's types. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer S } } ? S : SignalLike

export interface Limits {
  /** Time limit, in milliseconds. Default: no limit. */
  readonly timeout?: number
  readonly signal?: Signal | undefined
}

/** The options of one call, with the client's defaults applied. */
export interface CallSettings extends Limits {
  readonly timeout: number
  readonly maxRetries: number
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Monotonic clock, in ms. */
export const now = (): number => performance.now()

export const toTimeoutError = (timeout: number): TimeoutError =>
  new TimeoutError(`No result within ${timeout} ms`)

/**
 * Runs an operation until it settles, the timeout expires or the caller aborts, whichever comes first. The returned
 * promise does not wait for an operation that ignores its signal.
 */
export const withLimits = <A>(
  { timeout, signal }: Limits,
  run: (signal: Signal, deadline: number) => Promise<A>
): Promise<A> =>
  new Promise((resolve, reject) => {
    const controller = new AbortController()
    const fail = (error: Error) => {
      cleanUp()
      reject(error)
      controller.abort(error)
    }
    const onAbort = () => {
      const cause = signal!.reason
      // The signal may be that of an enclosing `withLimits` whose timeout has expired.
      fail(cause instanceof TimeoutError ? cause : new AbortError("The call was aborted", { cause }))
    }
    const timer = timeout && setTimeout(() => fail(toTimeoutError(timeout)), timeout)
    const cleanUp = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", onAbort)
    }
    if (signal?.aborted) return onAbort()
    signal?.addEventListener("abort", onAbort)
    run(controller.signal, now() + (timeout ?? Number.POSITIVE_INFINITY))
      .then(resolve, reject)
      .finally(cleanUp)
  })

/** Rejects with the signal's reason when the signal is aborted; never resolves. */
export const rejectOnAbort = (signal: Signal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener("abort", () => reject(signal.reason))
  })

/** Resolves after a delay in milliseconds, or rejects with the signal's reason when the signal is aborted. */
export const sleep = async (delay: number, signal: Signal): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, delay)
  })
  await Promise.race([elapsed, rejectOnAbort(signal)]).finally(() => clearTimeout(timer))
}
