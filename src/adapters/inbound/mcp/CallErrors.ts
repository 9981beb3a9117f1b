import { INTERNAL_ERROR, INVALID_PARAMS, ProtocolError } from "@modelcontextprotocol/server"
import { type ApiError, describeError, type ErrorDescription, errors } from "../contract/Errors.ts"

export type CallError = ApiError | ProtocolError

/** Makes an error for invalid parameters. `code` has the form of the codes of the HTTP API. */
export const makeInvalidParams = (message: string, code = "BAD_REQUEST"): ProtocolError =>
  new ProtocolError(INVALID_PARAMS, message, { code })

export const toErrorData = ({ code, headers }: ErrorDescription) => {
  const retryAfter = headers["retry-after"]
  return retryAfter === undefined ? { code } : { code, retryAfter: Number(retryAfter) }
}

/** Converts the error of a call. An error about the prompt of the call becomes an error for invalid parameters. */
export const toProtocolError = (error: CallError): ProtocolError => {
  if (error instanceof ProtocolError) return error
  const description = describeError(error)
  const code = errors[error._tag].subject === "workspace" ? INVALID_PARAMS : INTERNAL_ERROR
  return new ProtocolError(code, description.message, toErrorData(description))
}

/** Shortens a text of the caller, so that no error repeats a long text. */
export const shorten = (text: string): string => (text.length > 100 ? `${text.slice(0, 99)}…` : text)
