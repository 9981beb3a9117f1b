import { isJsonObject } from "../../domain/Json.ts"
import { type WorkspaceList, workspaceLists } from "../../domain/workspace/WorkspaceParts.ts"

/**
 * A JSON value of an archive's file and its path: an item of a list (`["prompts", 3]`), a member of the root object
 * (`["format"]`), or the root itself at the end (`[]`). When the file is streamed, a list or the root no longer
 * contains the parts that were already emitted.
 */
export interface RawPart {
  readonly path: readonly [] | readonly [key: string] | readonly [list: WorkspaceList, index: number]
  readonly value: unknown
}

/** The members of an archive, which may come in any order, in the order of an export. */
export const archiveMembers: ReadonlyArray<string> = ["format", "workspace", ...workspaceLists]

export const isWorkspaceList = (key: string): key is WorkspaceList =>
  (workspaceLists as ReadonlyArray<string>).includes(key)

/** Splits an archive's JSON into raw parts in its order. */
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
