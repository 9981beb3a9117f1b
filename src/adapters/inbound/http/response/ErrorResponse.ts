import * as Effect from "effect/Effect"
import { toUnexpectedError } from "../../../../application/observability/InternalError.ts"
import { type ApiError, describeError, encodeErrorEnvelope } from "../../contract/Errors.ts"
import { encodeBody, type HttpResponse, makeEntityHeaders, toRawHeaders } from "../HttpMessage.ts"

/** Returns the response to an error, without the common headers. */
export const toErrorResponse = (error: ApiError): HttpResponse => {
  const description = describeError(error)
  const body = encodeBody(encodeErrorEnvelope(description))
  return {
    status: description.status,
    headers: toRawHeaders({ ...description.headers, ...makeEntityHeaders(body, "application/json") }),
    body
  }
}

/** Returns the response to an error. If the resolved content of a prompt is too large, logs the id of the prompt. */
const respondToError = (error: ApiError): Effect.Effect<HttpResponse> => {
  const response = Effect.succeed(toErrorResponse(error))
  return error._tag === "ResolvedTooLarge"
    ? Effect.andThen(Effect.logWarning("Resolved content is too large", { prompt_id: error.id }), response)
    : response
}

/** Responds to every failure. For an unexpected failure, responds with the error that `toUnexpectedError` returns. */
export const respondToFailures = (
  response: Effect.Effect<HttpResponse, ApiError>,
  requestId: string
): Effect.Effect<HttpResponse> =>
  response.pipe(
    Effect.catch(respondToError),
    Effect.catchCause((cause) =>
      toUnexpectedError(cause, "Request failed").pipe(
        Effect.annotateLogs({ request_id: requestId }),
        Effect.map(toErrorResponse)
      )
    )
  )
