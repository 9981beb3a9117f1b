import { isUtf8 } from "node:buffer"
import * as Result from "effect/Result"
import { isJsonObject, type JsonObject } from "../../../domain/Json.ts"

export const maxMessageBytes = 1024 * 1024

/** The id of a request. MCP allows neither null nor fractions. */
export type RpcId = string | number

/** The error codes of JSON-RPC 2.0, and the codes of MCP 2026-07-28 that the service sends. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  headerMismatch: -32020,
  unsupportedVersion: -32022
} as const

/**
 * An error of a call, with the HTTP status of its response. `code` is one of `rpcCodes`, or the status that the error
 * has in the HTTP API. `data.code` is a code of the HTTP API, or a code of the same form.
 */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: JsonObject
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

/** A message from a client. `params` is empty if the message has no parameters. */
export type RpcMessage =
  | {
      readonly _tag: "Request"
      readonly id: RpcId
      readonly method: string
      readonly params: JsonObject
    }
  | { readonly _tag: "Notification"; readonly method: string; readonly params: JsonObject }
  | { readonly _tag: "Response" }

export type RpcRequest = Extract<RpcMessage, { readonly _tag: "Request" }>

/** The error of an invalid message, and the id of the message if the id is valid. */
export interface InvalidMessage {
  readonly id: RpcId | undefined
  readonly error: RpcError
}

export const makeProtocolError = (code: number, message: string, data?: JsonObject): RpcError => ({
  code,
  message,
  ...(data === undefined ? {} : { data }),
  status: code === rpcCodes.methodNotFound ? 404 : 400
})

/** Makes the error of a call with invalid parameters. The HTTP status of the response is 200. */
export const makeInvalidParams = (message: string, data: JsonObject = { code: "BAD_REQUEST" }): RpcError => ({
  code: rpcCodes.invalidParams,
  message,
  data,
  status: 200
})

/**
 * Maximum length of a request id, in characters. There is a limit because every message of a subscription repeats the
 * id.
 */
const maxIdLength = 256

const isRpcId = (value: unknown): value is RpcId =>
  (typeof value === "string" && value.length <= maxIdLength) || Number.isSafeInteger(value)

const toMessage = (value: unknown): RpcMessage | string => {
  if (Array.isArray(value)) return "Batches are not supported"
  if (!isJsonObject(value)) return "The message must be an object"
  const { jsonrpc, id, method, params = {} } = value
  if (jsonrpc !== "2.0") return 'jsonrpc must be "2.0"'
  if (method === undefined && ("result" in value || "error" in value)) return { _tag: "Response" }
  if (typeof method !== "string") return "method must be a string"
  if (!isJsonObject(params)) return "params must be an object"
  if (!("id" in value)) return { _tag: "Notification", method, params }
  return isRpcId(id)
    ? { _tag: "Request", id, method, params }
    : `id must be an integer or a string of at most ${maxIdLength} characters`
}

export const parseMessage = (bytes: Uint8Array): Result.Result<RpcMessage, InvalidMessage> => {
  let value: unknown
  try {
    if (!isUtf8(bytes)) throw new TypeError("not UTF-8")
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  } catch {
    return Result.fail({
      id: undefined,
      error: makeProtocolError(rpcCodes.parseError, "The message is not JSON in UTF-8")
    })
  }
  const message = toMessage(value)
  if (typeof message !== "string") return Result.succeed(message)
  const id = isJsonObject(value) && isRpcId(value.id) ? value.id : undefined
  return Result.fail({ id, error: makeProtocolError(rpcCodes.invalidRequest, message) })
}

export const encodeResult = (id: RpcId, result: JsonObject): string =>
  JSON.stringify({ jsonrpc: "2.0", id, result })

/** Encodes an error. `id` is undefined if the id of the message is invalid or was not read. */
export const encodeError = (id: RpcId | undefined, { code, message, data }: RpcError): string =>
  JSON.stringify({ jsonrpc: "2.0", id, error: { code, message, data } })

export const encodeNotification = (method: string, params?: JsonObject): string =>
  JSON.stringify({ jsonrpc: "2.0", method, params })
