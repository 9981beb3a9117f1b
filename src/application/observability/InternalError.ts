import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { Unavailable } from "../ports/Unavailable.ts"

/** Returns the message of anything that was thrown. */
export const toMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** An unexpected failure. The log has the details. */
export const InternalError = { _tag: "InternalError" } as const

/**
 * Returns the error of a read or a request whose failure has this cause. For a defect, logs the cause, because the error
 * has no details. For an interruption, which means that the service is shutting down, returns `Unavailable`.
 *
 * @param requestId the id of the request in the log line, if the caller got one
 */
export const toError = <E>(
  cause: Cause.Cause<E>,
  requestId?: string
): Effect.Effect<E | typeof InternalError | Unavailable> => {
  const expected = Cause.findErrorOption(cause)
  if (expected._tag === "Some") return Effect.succeed(expected.value)
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Unavailable)
  const fields = requestId === undefined ? {} : { request_id: requestId }
  return Effect.as(Effect.logError("Request failed", fields, cause), InternalError)
}
