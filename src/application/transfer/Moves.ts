import type { Problem } from "../../domain/WorkspaceContent.ts"
import { type ContentState, getContent, getName } from "./ContentState.ts"
import type { FileChange } from "./FileImport.ts"
import type { ContentFile } from "./PromptFile.ts"

/** Returns texts that a file and the same file at another path have in common. */
const toTraits = (state: ContentState): ReadonlyArray<string> => [
  `${state.kind} name ${getName(state)}`,
  `${state.kind} content ${getContent(state)}`
]

/**
 * Returns a warning for each new file without an id that has the content or the name of a prompt or fragment that loses
 * its file in the same import. If the file was moved, its prompt gets another id, and its versions stay with the
 * archived prompt.
 */
export const findMoves = (
  changes: ReadonlyArray<FileChange>,
  files: ReadonlyArray<ContentFile>
): ReadonlyArray<Problem> => {
  const withoutId = new Set(files.filter(({ file_id }) => file_id === null).map(({ path }) => path))
  const lost = new Map(
    changes.flatMap((change) =>
      change.after === null && change.before !== null
        ? toTraits(change.before).map((trait) => [trait, change] as const)
        : []
    )
  )
  return changes.flatMap(({ kind, path, change, after }) => {
    if (change !== "added" || path === null || after === null || !withoutId.has(path)) return []
    const [old] = toTraits(after).flatMap((trait) => lost.get(trait) ?? [])
    if (old === undefined) return []
    const message = `looks like a move of ${kind} ${old.id} (${old.name}): to keep its id and its history, add the earlier path of the file to the front matter, such as "id: ${kind}s/old/path.md"`
    return [{ path, message }]
  })
}
