import { isJsonObject } from "../../domain/Json.ts"
import { type WorkspaceList, workspaceLists } from "../../domain/workspace/WorkspaceParts.ts"

/**
 * A JSON value in the file of an archive, and its path. The value is an item of a list (`["prompts", 3]`), a member of
 * the root object (`["format"]`) or, at the end, the root itself (`[]`). When the file is streamed, a list or the root
 * no longer contains the values that were already emitted as parts.
 */
export interface RawPart {
  readonly path: readonly [] | readonly [key: string] | readonly [list: WorkspaceList, index: number]
  readonly value: unknown
}

/** The names of an archive's members, in the order of an export. An import accepts the members in any order. */
export const archiveMembers: ReadonlyArray<string> = ["format", "workspace", ...workspaceLists]

export const isWorkspaceList = (key: string): key is WorkspaceList =>
  (workspaceLists as ReadonlyArray<string>).includes(key)

/** Splits the parsed JSON of an archive into raw parts. Each list follows its items, and the root comes last. */
export function* toRawParts(json: unknown): Generator<RawPart> {
  if (isJsonObject(json)) {
    for (const [key, value] of Object.entries(json)) {
      if (isWorkspaceList(key) && Array.isArray(value)) {
        for (const [index, item] of value.entries()) yield { path: [key, index], value: item }
      }
      yield { path: [key], value }
    }
  }
  yield { path: [], value: json }
}
