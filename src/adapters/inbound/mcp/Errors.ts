import { type ApiError, describeError } from "../http/contract/Errors.ts"
import type { JsonObject } from "../../../domain/Json.ts"
import { makeInvalidParams, type RpcError, rpcCodes } from "./JsonRpc.ts"

/** The errors of requests that never reach a method, with the code of the HTTP API. */
export const forbiddenOrigin: RpcError = {
  code: 403,
  message: "The origin is not allowed",
  data: { code: "FORBIDDEN_ORIGIN" },
  status: 403
}
export const bodyTooLarge: RpcError = {
  code: 413,
  message: "The message is too large",
  data: { code: "BODY_TOO_LARGE" },
  status: 413
}
export const notAcceptable: RpcError = {
  code: 406,
  message: "The client must accept text/event-stream",
  data: { code: "NOT_ACCEPTABLE" },
  status: 406
}

/** The error of a prompt that is too large once its slots are filled. */
export const filledTooLarge: RpcError = {
  code: 422,
  message: "The prompt with its arguments is too large",
  data: { code: "RESOLVED_TOO_LARGE" },
  status: 200
}
/** A prompt with more slots cannot be read. */
export const maxSlots = 1_000

/** The error of a prompt that has more than `maxSlots` slots. */
export const tooManySlots: RpcError = {
  ...filledTooLarge,
  message: `The prompt has more than ${maxSlots} slots`
}

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
