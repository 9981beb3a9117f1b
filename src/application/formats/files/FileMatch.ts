import type { FragmentFile, PromptFile, PromptFiles } from "./PromptFiles.ts"

/** Prompts or fragments of which only the ids matter. */
type WithIds = ReadonlyArray<{ readonly id: string }>

/** Makes a function that gives a file the id in its front matter if the workspace has that id. */
const makeMatcher = (existing: WithIds) => {
  const ids = new Set(existing.map(({ id }) => id))
  return <File extends PromptFile | FragmentFile>(file: File): File =>
    file.file_id !== null && ids.has(file.file_id) ? { ...file, id: file.file_id } : file
}

/**
 * Finds the prompt or fragment of a workspace that each file describes: the one whose id is in the front matter, if
 * the workspace has it, archived prompts included. Any other file describes the prompt with the id that its reader
 * derived from the workspace and the id in the front matter, or from the workspace and the path without an id. An id
 * of another workspace is therefore never taken, and the same files describe the same prompts in every import.
 */
export const matchFiles = (
  content: { readonly prompts: WithIds; readonly fragments: WithIds },
  files: PromptFiles
): PromptFiles => {
  const fragments = files.fragments.map(makeMatcher(content.fragments))
  const matchedIds = new Map(files.fragments.map(({ id }, index) => [id, fragments[index]?.id ?? id]))
  const prompts = files.prompts.map(makeMatcher(content.prompts)).map((file) => ({
    ...file,
    fragments: file.fragments.map(({ fragment_id, variable_overrides }) => ({
      fragment_id: matchedIds.get(fragment_id) ?? fragment_id,
      variable_overrides
    }))
  }))
  return { fragments, prompts }
}
