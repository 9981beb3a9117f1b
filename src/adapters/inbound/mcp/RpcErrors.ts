import type { AdmissionError } from "../../../application/access/Admission.ts"
import type { JsonObject } from "../../../domain/Json.ts"
import type { ResolvedTooLarge } from "../../../domain/Resolution.ts"
import {
  describeError,
  type InternalError,
  type MethodNotAllowed,
  type RequestTimeout
} from "../contract/Errors.ts"
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

/** The errors of the HTTP API that requests for this endpoint can have. */
type RequestError =
  | AdmissionError
  | ResolvedTooLarge
  | typeof InternalError
  | typeof MethodNotAllowed
  | typeof RequestTimeout

/**
 * The kind of an error. The kind determines the code of the error in JSON-RPC, and the HTTP status of the response:
 *
 * - `internal`: the code for internal errors, and the status of the HTTP API.
 * - `prompt`, for an error of the prompt that the call names: the status of the HTTP API as the code, and the status
 *   200.
 * - `request`: the status of the HTTP API, both as the code and as the status.
 */
type RpcKind = "internal" | "prompt" | "request"

const kinds: Readonly<Record<RequestError["_tag"], RpcKind>> = {
  MalformedAuthorization: "request",
  InvalidKeyFormat: "request",
  InvalidKey: "request",
  KeyRevoked: "request",
  OwnerMustReset: "request",
  NoOrganization: "request",
  Disputed: "request",
  PastDue: "request",
  ApiNotAllowed: "request",
  MethodNotAllowed: "request",
  RequestTimeout: "request",
  ResolvedTooLarge: "prompt",
  RateLimited: "request",
  InternalError: "internal",
  Unavailable: "request"
}

export const toRpcError = (error: RequestError): RpcError => {
  const { status, code, message, headers } = describeError(error)
  const data: JsonObject = {
    code,
    ...(headers["retry-after"] === undefined ? {} : { retryAfter: Number(headers["retry-after"]) })
  }
  const kind = kinds[error._tag]
  return {
    code: kind === "internal" ? rpcCodes.internalError : status,
    message,
    data,
    status: kind === "prompt" ? 200 : status,
    headers
  }
}
