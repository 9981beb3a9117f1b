import { programVersion } from "../../../application/ProgramVersion.ts"
import type { JsonObject } from "../../../domain/Json.ts"

/** The protocol version in which each request carries all metadata, and clients do not send `initialize`. */
export const statelessVersion = "2026-07-28"

/** The protocol versions in which clients first send `initialize`. The latest version comes first. */
export const initializedVersions = ["2025-11-25", "2025-06-18"] as const

/** All supported protocol versions. The latest version comes first. */
export const supportedVersions: ReadonlyArray<string> = [statelessVersion, ...initializedVersions]

export const isInitializedVersion = (version: unknown): boolean =>
  (initializedVersions as ReadonlyArray<unknown>).includes(version)

/** How the service responds to requests of a protocol version: `stateless` for 2026-07-28, otherwise `initialized`. */
export type ProtocolMode = "stateless" | "initialized"

/** The keys of `_meta` that the service reads or writes. */
export const metaKeys = {
  protocolVersion: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId"
} as const

export const serverInfo = { name: "prompt-retrieval", title: "Prompts", version: programVersion }

const serverMeta: JsonObject = { [metaKeys.serverInfo]: serverInfo }

/** Adds the fields that the mode requires in every result. */
export const completeResult = (
  mode: ProtocolMode,
  result: JsonObject,
  meta: JsonObject = serverMeta
): JsonObject => (mode === "stateless" ? { resultType: "complete", ...result, _meta: meta } : result)
