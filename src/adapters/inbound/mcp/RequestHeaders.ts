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

/** Matches a header value in base64. Clients encode a text that a header cannot contain. */
const encodedValuePattern = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/** Decodes a header value, which may be in base64. Returns `undefined` if the bytes are not UTF-8. */
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

/** Returns an error if a header names an unsupported protocol version. A request without the header is valid. */
export const findVersionProblem = (headers: Headers): RpcError | undefined => {
  const header = headers["mcp-protocol-version"]
  return header === undefined || supportedVersions.includes(header)
    ? undefined
    : makeUnsupportedVersion(header)
}

/**
 * Returns the mode of a request, or an error if the request's metadata is invalid. Since version 2026-07-28, `_meta`
 * names the protocol version, and headers repeat the version, the method and the name. In earlier versions, only a
 * header names the version. A request that names no version is handled like a request of an earlier version.
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

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if a request with this `Origin` may be served. The `Origin` of this machine and of the service's own
 * pages is allowed. A request without `Origin` is allowed, because browsers send `Origin` with every POST, and with
 * every GET that a page of another origin could read. `Host` is not compared with `Origin`: an attacker can point the
 * host name of a web page to this machine, and then both headers have that name.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}
