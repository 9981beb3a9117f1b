import { isUtf8 } from "node:buffer"
import { isJsonObject, type JsonObject } from "../../../domain/Json.ts"
import { makeProtocolError, type RpcError, type RpcRequest, rpcCodes } from "./JsonRpc.ts"
import {
  type ProtocolMode,
  isInitializedVersion,
  metaKeys,
  statelessVersion,
  supportedVersions
} from "./ProtocolVersions.ts"

type Headers = Readonly<Record<string, string | undefined>>

const makeMismatch = (message: string): RpcError =>
  makeProtocolError(rpcCodes.headerMismatch, `Headers and message differ: ${message}`)

const makeUnsupportedVersion = (requested: unknown): RpcError =>
  makeProtocolError(rpcCodes.unsupportedVersion, "Unsupported protocol version", {
    supported: supportedVersions,
    requested
  })

/** Matches a header value that is encoded as UTF-8 in base64, because a header cannot carry the plain value. */
const encodedValuePattern = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** Decodes the value of a header. Returns `undefined` if its encoding is not valid. */
const decodeHeader = (value: string): string | undefined => {
  const encoded = encodedValuePattern.exec(value)?.[1]
  if (encoded === undefined) return value
  const bytes = Buffer.from(encoded, "base64")
  return isUtf8(bytes) ? bytes.toString() : undefined
}

/** The methods whose parameter `name` is repeated in the header `Mcp-Name`. */
const namedMethods: ReadonlySet<string> = new Set(["prompts/get", "tools/call"])

const findHeaderProblem = (headers: Headers, { method, params }: RpcRequest): RpcError | undefined => {
  const methodHeader = headers["mcp-method"]
  if (methodHeader !== method)
    return makeMismatch(methodHeader === undefined ? "Mcp-Method is missing" : "Mcp-Method must equal method")
  if (!namedMethods.has(method) || typeof params.name !== "string") return undefined
  const nameHeader = headers["mcp-name"]
  if (nameHeader === undefined) return makeMismatch("Mcp-Name is missing")
  return decodeHeader(nameHeader) === params.name
    ? undefined
    : makeMismatch("Mcp-Name must equal params.name")
}

const readMeta = ({ params }: RpcRequest): JsonObject => (isJsonObject(params._meta) ? params._meta : {})

const findMetaProblem = (meta: JsonObject): RpcError | undefined => {
  const missing = typeof meta[metaKeys.protocolVersion] === "string" ? undefined : metaKeys.protocolVersion
  const problem =
    missing ?? (isJsonObject(meta[metaKeys.clientCapabilities]) ? undefined : metaKeys.clientCapabilities)
  return problem === undefined
    ? undefined
    : makeProtocolError(rpcCodes.invalidParams, `_meta must have ${problem}`, { code: "BAD_REQUEST" })
}

/** Returns the error of a header that names an unsupported protocol version. A request may leave the header out. */
export const findVersionProblem = (headers: Headers): RpcError | undefined => {
  const header = headers["mcp-protocol-version"]
  return header === undefined || supportedVersions.includes(header)
    ? undefined
    : makeUnsupportedVersion(header)
}

/**
 * Returns the mode of a request, or the error of its metadata. Since 2026-07-28, `_meta` names the protocol version,
 * and headers repeat the version, the method and the name. A request of an earlier version names the version only in
 * a header; without the header, the request has the latest of the earlier versions.
 */
export const findModeOfRequest = (headers: Headers, request: RpcRequest): ProtocolMode | RpcError => {
  const header = headers["mcp-protocol-version"]
  const meta = readMeta(request)
  const version = meta[metaKeys.protocolVersion]
  if (version === undefined && (header === undefined || isInitializedVersion(header))) return "initialized"
  if (header === undefined) return makeMismatch("MCP-Protocol-Version is missing")
  if (version === undefined && header !== statelessVersion) return makeUnsupportedVersion(header)
  const problem = findMetaProblem(meta)
  if (problem !== undefined) return problem
  if (version !== header) return makeMismatch("MCP-Protocol-Version must equal the version in _meta")
  if (version !== statelessVersion)
    return isInitializedVersion(version) ? "initialized" : makeUnsupportedVersion(version)
  return findHeaderProblem(headers, request) ?? "stateless"
}

/** The names of this machine. */
const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if a request with this `Origin` may be served: a request without `Origin`, which only non-browser
 * clients send, or from a page of this machine or of the service. `Host` is not checked, because the owner of a web
 * page may have pointed the page's host name to this machine.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}
