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
