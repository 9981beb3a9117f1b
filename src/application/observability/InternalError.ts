import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { Unavailable } from "../ports/Unavailable.ts"

/** Returns the message of anything that was thrown. */
export const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** An unexpected failure. The log has the details. */
export const InternalError = { _tag: "InternalError" } as const

/**
 * Returns the error that a caller gets for an unexpected failure. For a defect, logs `message` with the cause, because
 * the error has no details. For an interruption, which means that the service is shutting down, returns `Unavailable`.
 */
export const toUnexpectedError = (
  cause: Cause.Cause<unknown>,
  message: string
): Effect.Effect<typeof InternalError | Unavailable> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.succeed(Unavailable)
    : Effect.as(Effect.logError(message, cause), InternalError)

/**
 * Returns the error of a request whose failure has this cause. For an unexpected failure, returns the error of
 * `toUnexpectedError`; the log line has the id of the request.
 */
export const toError = <E>(
  cause: Cause.Cause<E>,
  requestId: string
): Effect.Effect<E | typeof InternalError | Unavailable> => {
  const expected = Cause.findErrorOption(cause)
  return expected._tag === "Some"
    ? Effect.succeed(expected.value)
    : Effect.annotateLogs(toUnexpectedError(cause, "Request failed"), { request_id: requestId })
}
