/**
 * The failure of a port whose backend cannot be reached or did not respond in time. A retry may succeed.
 *
 * The whole program has three kinds of errors:
 *
 * - An expected failure, such as `PromptNotFound` or `Unavailable`. Callers handle it. The failure is a tagged value
 *   without a stack trace, because creating a stack trace costs several times as much as rejecting a request.
 * - An operational failure, such as a TCP port that is in use. The failure stops a command or the process, and is a
 *   `Data.TaggedError` with a message for the operator.
 * - Any other error is a defect.
 */
export const Unavailable = { _tag: "Unavailable" } as const
export type Unavailable = typeof Unavailable

export const isUnavailable = (error: unknown): error is Unavailable =>
  (error as { readonly _tag?: unknown } | null | undefined)?._tag === Unavailable._tag
