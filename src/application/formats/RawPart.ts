import { isObject } from "../../domain/Json.ts"
import { InvalidContent } from "../../domain/Problem.ts"
import { type WorkspaceList, workspaceLists } from "../../domain/WorkspaceParts.ts"

/**
 * A JSON value of an archive's file and its path: an item of a list (`["prompts", 3]`), a member of the root object
 * (`["format"]`), or the root itself at the end (`[]`). When the file is streamed, a list or the root no longer contains
 * the parts that were already emitted.
 */
export interface RawPart {
  readonly path: readonly [] | readonly [key: string] | readonly [list: WorkspaceList, index: number]
  readonly value: unknown
}

/** The members of an archive in the order in which they are read. */
export const archiveMembers: ReadonlyArray<string> = ["format", "workspace", ...workspaceLists]

/** Returns true for the name of a list of the archive. */
export const isWorkspaceList = (key: string): key is WorkspaceList =>
  (workspaceLists as ReadonlyArray<string>).includes(key)

/** Splits an archive's JSON into raw parts in the order of `archiveMembers`, regardless of the order in the JSON. */
export function* toRawParts(json: unknown): Generator<RawPart> {
  if (isObject(json)) {
    const members = archiveMembers.filter((key) => Object.hasOwn(json, key))
    for (const key of new Set([...members, ...Object.keys(json)])) {
      const value = json[key]
      if (isWorkspaceList(key) && Array.isArray(value)) {
        for (const [index, item] of value.entries()) yield { path: [key, index], value: item }
      }
      yield { path: [key], value }
    }
  }
  yield { path: [], value: json }
}

/** Returns the error for a file that is not JSON. */
export const toJsonError = (error: unknown): InvalidContent =>
  InvalidContent([
    {
      path: "",
      message: `is not a JSON document in UTF-8: ${error instanceof Error ? error.message : String(error)}`
    }
  ])
