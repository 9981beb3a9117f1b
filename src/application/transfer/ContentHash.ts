import { createHash } from "node:crypto"
import { isJsonObject } from "../../domain/Json.ts"
import type { ContentState } from "./ContentFile.ts"

/** Sorts the members of objects by name, because PostgreSQL does not keep the member order of free-form JSON. */
const sortMembers = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sortMembers)
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).map(([name, member]) => [name, sortMembers(member)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/**
 * Returns the SHA-256 hash of a state in hexadecimal digits. Equal states have equal hashes, whether they come from a
 * file or from the database.
 */
export const hashState = ({ kind: _, ...state }: ContentState): string =>
  createHash("sha256")
    .update(JSON.stringify(sortMembers(state)))
    .digest("hex")
