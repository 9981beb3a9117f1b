import { type ApiError, describeError } from "../contract/Errors.ts"
import type { JsonObject } from "../../../domain/Json.ts"
import { makeInvalidParams, type RpcError, rpcCodes } from "./JsonRpc.ts"

const makeError = (status: number, code: string, message: string): RpcError => ({
  code: status,
  message,
  data: { code },
  status
})

/** The errors of requests that never reach a method, with the code of the HTTP API. */
export const forbiddenOrigin = makeError(403, "FORBIDDEN_ORIGIN", "The origin is not allowed")
export const bodyTooLarge = makeError(413, "BODY_TOO_LARGE", "The message is too large")
export const notAcceptable = makeError(406, "NOT_ACCEPTABLE", "The client must accept text/event-stream")

const makeTooLarge = (message: string): RpcError => ({
  ...makeError(422, "RESOLVED_TOO_LARGE", message),
  status: 200
})

/** A prompt with more slots cannot be read. */
export const maxSlots = 1_000

/** The errors of a prompt that is too large: once its slots are filled, or because of its slots. */
export const filledTooLarge = makeTooLarge("The prompt with its arguments is too large")
export const tooManySlots = makeTooLarge(`The prompt has more than ${maxSlots} slots`)

/** Returns the error of a name that no prompt of the workspace has. */
export const makeUnknownPrompt = (name: string): RpcError =>
  makeInvalidParams(`Unknown prompt: ${name}`, { code: "NOT_FOUND" })

const resultErrors: ReadonlySet<ApiError["_tag"]> = new Set(["PromptNotFound", "InvalidParameter"])

/**
 * Converts an error of the HTTP API. An error of the caller or of the service has the HTTP status of the API as its
 * code and as the status of the response; an error of the prompt that a call names has the status 200.
 */
export const toRpcError = (error: ApiError): RpcError => {
  const { status, code, message, headers } = describeError(error)
  const data: JsonObject = {
    code,
    ...(headers["retry-after"] === undefined ? {} : { retryAfter: Number(headers["retry-after"]) })
  }
  if (resultErrors.has(error._tag)) return makeInvalidParams(message, data)
  const rpcCode = error._tag === "InternalError" ? rpcCodes.internalError : status
  return { code: rpcCode, message, data, status: error._tag === "ResolvedTooLarge" ? 200 : status, headers }
}
