import type { JsonObject } from "../../../domain/Json.ts"
import { type ApiError, describeError, errors } from "../contract/Errors.ts"
import { makeInvalidParams, type RpcError, rpcCodes } from "./JsonRpc.ts"

const makeError = (status: number, code: string, message: string): RpcError => ({
  code: status,
  message,
  data: { code },
  status
})

/**
 * The errors of requests that are rejected before a method runs. `data.code` has the form of a code of the HTTP API.
 */
export const forbiddenOrigin = makeError(403, "FORBIDDEN_ORIGIN", "The origin is not allowed")
export const bodyTooLarge = makeError(413, "BODY_TOO_LARGE", "The message is too large")
export const notAcceptable = makeError(406, "NOT_ACCEPTABLE", "The client must accept text/event-stream")

const makeTooLarge = (message: string): RpcError => ({
  ...makeError(422, "RESOLVED_TOO_LARGE", message),
  status: 200
})

/** Maximum number of slots of a prompt. A prompt with more slots cannot be read through MCP. */
export const maxSlots = 1_000

export const filledTooLarge = makeTooLarge("The prompt with its arguments is too large")
export const tooManySlots = makeTooLarge(`The prompt has more than ${maxSlots} slots`)

export const makeUnknownPrompt = (name: string): RpcError =>
  makeInvalidParams(`Unknown prompt: ${name}`, { code: "NOT_FOUND" })

/**
 * Converts an error of the HTTP API. An unexpected failure has the JSON-RPC code for internal errors; all other errors
 * have their HTTP status as the code. The status of the response is that of the HTTP API, except for an error about the
 * prompt that the call names, whose response has the status 200.
 */
export const toRpcError = (error: ApiError): RpcError => {
  const { status, code, message, headers } = describeError(error)
  const data: JsonObject = {
    code,
    ...(headers["retry-after"] === undefined ? {} : { retryAfter: Number(headers["retry-after"]) })
  }
  return {
    code: error._tag === "InternalError" ? rpcCodes.internalError : status,
    message,
    data,
    status: errors[error._tag].subject === "workspace" ? 200 : status,
    headers
  }
}
