import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Unavailable } from "./ports/Unavailable.ts"

/** An unexpected failure. The log has the details. */
export const InternalError = { _tag: "InternalError" } as const

/**
 * Converts the cause of a failed read or request to an error. If the cause is a defect, logs the cause, because the
 * error has no details. If the cause is an interruption, returns `Unavailable`, because the service is shutting down.
 *
 * @param requestId the id of the request, for the log line; undefined if the request has no id
 */
export const toError = <E>(
  cause: Cause.Cause<E>,
  requestId?: string
): Effect.Effect<E | typeof InternalError | Unavailable> => {
  const expected = Cause.findErrorOption(cause)
  if (Option.isSome(expected)) return Effect.succeed(expected.value)
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Unavailable)
  const fields = requestId === undefined ? {} : { request_id: requestId }
  return Effect.as(Effect.logError("Request failed", fields, cause), InternalError)
}
