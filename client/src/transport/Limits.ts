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
  /** True if no caller waits. The timers and connections then do not keep a Node process running. */
  readonly isBackground?: boolean | undefined
}

/** The options of one call, with the client's defaults applied. */
export interface CallSettings extends Limits {
  readonly timeout: number
  readonly maxRetries: number
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Monotonic clock, in ms. */
export const now = (): number => performance.now()

/**
 * The readings of two clocks at the same moment, in milliseconds. The monotonic clock can stop while the machine is
 * suspended. The wall clock can be set back.
 */
export type Instant = readonly [monotonic: number, wall: number]

export const readClocks = (): Instant => [now(), Date.now()]

/** Returns the instant `millis` milliseconds before the given instant. */
export const subtract = ([monotonic, wall]: Instant, millis: number): Instant => [
  monotonic - millis,
  wall - millis
]

/**
 * Returns the milliseconds from one instant to another instant. By default, `to` is the current instant. Uses the clock
 * with the larger difference, so that the computed age of a text is never too small.
 */
export const getElapsed = (from: Instant, to: Instant = readClocks()): number =>
  Math.max(to[0] - from[0], to[1] - from[1])

export const toTimeoutError = (timeout: number): TimeoutError =>
  new TimeoutError(`No result within ${timeout} ms`)

/**
 * Runs an operation until it settles, the timeout expires or the caller aborts, whichever comes first. The returned
 * promise does not wait for an operation that ignores its signal.
 */
export const withLimits = <A>(
  { timeout, signal, isBackground }: Limits,
  run: (signal: Signal) => Promise<A>
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
      // The signal can belong to an enclosing `withLimits` whose timeout has expired.
      fail(cause instanceof TimeoutError ? cause : new AbortError("The call was aborted", { cause }))
    }
    const timer = timeout === undefined ? undefined : setTimeout(() => fail(toTimeoutError(timeout)), timeout)
    if (isBackground) (timer as { unref?(): void } | undefined)?.unref?.()
    const cleanUp = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", onAbort)
    }
    if (signal?.aborted) return onAbort()
    signal?.addEventListener("abort", onAbort)
    run(controller.signal).then(resolve, reject).finally(cleanUp)
  })

/** Resolves after a delay in milliseconds, or rejects with the signal's reason when the signal is aborted. */
export const sleep = (timeout: number, signal: Signal, limits: Limits): Promise<void> =>
  withLimits({ ...limits, timeout, signal }, () => new Promise<void>(() => {})).catch(() =>
    signal.throwIfAborted()
  )
