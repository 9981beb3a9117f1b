import { AbortError, TimeoutError } from "./Errors.ts"

/** What is used of an `AbortSignal`. */
export interface SignalLike {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: "abort", listener: () => void): void
  removeEventListener(type: "abort", listener: () => void): void
}

/** The platform's `AbortSignal` where its types are known, so that the client's types need no library of them. */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer S } } ? S : SignalLike

export interface Limits {
  /** Milliseconds. */
  readonly timeout: number
  readonly signal?: Signal | undefined
}

/** What one call asks of its requests, limits included. */
export interface Call extends Limits {
  readonly maxRetries: number
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A clock that nobody sets, in milliseconds. */
export const now = (): number => performance.now()

/**
 * Runs something until it ends, its time is up or the caller aborts, whichever comes first: what does not listen to the
 * signal that it is given can't hold the caller up.
 */
export const withLimits = <A>(
  { timeout, signal }: Limits,
  run: (signal: Signal, deadline: number) => Promise<A>
): Promise<A> =>
  new Promise((resolve, reject) => {
    const controller = new AbortController()
    const stop = (error: Error) => {
      end()
      reject(error)
      controller.abort(error)
    }
    const onAbort = () => stop(new AbortError("The call was aborted", { cause: signal?.reason }))
    const timer = setTimeout(() => stop(new TimeoutError(`No result within ${timeout} ms`)), timeout)
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", onAbort)
    }
    if (signal?.aborted) return onAbort()
    signal?.addEventListener("abort", onAbort)
    run(controller.signal, now() + timeout)
      .then(resolve, reject)
      .finally(end)
  })

/** Never resolves; rejects with the signal's reason once it is aborted. */
export const aborted = (signal: Signal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    signal.addEventListener("abort", () => reject(signal.reason))
  })

/** Waits so many milliseconds, or rejects with the signal's reason once it is aborted. */
export const sleep = async (millis: number, signal: Signal): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const waited = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, millis)
  })
  await Promise.race([waited, aborted(signal)]).finally(() => clearTimeout(timer))
}
