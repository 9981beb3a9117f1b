/**
 * The failure that all ports share: the backend cannot be reached or did not respond in time. A retry may succeed.
 *
 * The whole program reports errors by one rule. An expected failure, which callers handle, such as `PromptNotFound` or
 * `Unavailable`, is a tagged value without a stack trace: creating a stack trace costs several times as much as
 * rejecting a request. An operational failure, which stops a command or the process, such as a port that is in use, is
 * a `Data.TaggedError` with a message for the operator. Anything else is a defect.
 */
export const Unavailable = { _tag: "Unavailable" } as const
export type Unavailable = typeof Unavailable

export const isUnavailable = (error: unknown): error is Unavailable =>
  (error as { readonly _tag?: unknown } | null | undefined)?._tag === Unavailable._tag
