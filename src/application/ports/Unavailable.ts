/**
 * The only failure that every port can have besides its own: its backend cannot be reached or did not respond in
 * time. Trying again later may help.
 *
 * The rule for errors of the whole program: an expected failure (a value that callers handle, such as
 * `PromptNotFound` or this one) is a tagged value without a stack trace, because creating a stack trace costs
 * several times as much as rejecting a request. An operational failure (one that stops a command or the process,
 * such as a port that is in use) is a `Data.TaggedError` with a message for the operator. Anything else is a
 * defect.
 */
export const Unavailable = { _tag: "Unavailable" } as const
export type Unavailable = typeof Unavailable

/** Returns true for `Unavailable`. */
export const isUnavailable = (error: unknown): error is Unavailable =>
  (error as { readonly _tag?: unknown } | null | undefined)?._tag === Unavailable._tag
