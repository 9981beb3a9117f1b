import * as Result from "effect/Result"
import { planExport } from "../../src/application/transfer/FileExport.ts"
import { type FileImport, planImport } from "../../src/application/transfer/FileImport.ts"
import { type Pair, pairWithFiles } from "../../src/application/transfer/Pairing.ts"
import { parseFiles, type Texts } from "../../src/application/transfer/PromptFile.ts"
import type { WorkspacePrompt } from "../../src/domain/Workspace.ts"
import type { ContentEdit, WorkspaceContent } from "../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { archive, compareIds, instant, newId, toWorkspaceContent } from "./archives.ts"

type Source = Omit<WorkspaceContent, "prompts" | "importedStates"> & {
  readonly workspace: { readonly id: WorkspaceId }
  readonly prompts: ReadonlyArray<WorkspacePrompt>
}

/** The fields of a prompt whose file has only a body. */
export const fileDefaults = {
  description: "",
  prompt_type: "user",
  target_model: "",
  intent: "",
  is_favorite: false,
  sort_order: 0
} as const

/** The time of every import. */
export const now = instant("2030-01-01T00:00:00.000Z")

/** Returns the files that an export of a workspace writes into an empty directory. */
export const renderFiles = (source: Source): Texts =>
  Result.getOrThrow(planExport(source.workspace.id, toWorkspaceContent(source), new Map())).textsToWrite

/** Returns the prompts of a workspace and the files, paired as an import pairs them. */
export const pairFiles = (home: WorkspaceId, content: WorkspaceContent, texts: Texts): ReadonlyArray<Pair> =>
  Result.getOrThrow(pairWithFiles(home, content, Result.getOrThrow(parseFiles(texts))))

/** Returns the content of a workspace after an edit. */
const applyEdit = (content: WorkspaceContent, edit: ContentEdit): WorkspaceContent => {
  const replace = <A extends { readonly id: string }>(items: ReadonlyArray<A>, written: ReadonlyArray<A>) => [
    ...new Map([...items, ...written].toSorted(compareIds).map((item) => [item.id, item])).values()
  ]
  const before = new Map(content.prompts.map((prompt) => [prompt.id, prompt]))
  const edited = edit.prompts.map(({ versions: _, ...prompt }) => {
    const { next_version, parent_version_id } = before.get(prompt.id) ?? {
      next_version: 1,
      parent_version_id: null
    }
    return { ...prompt, next_version, parent_version_id }
  })
  return {
    folders: replace(content.folders, edit.folders),
    tags: replace(content.tags, edit.tags),
    fragments: replace(content.fragments, edit.fragments).filter(
      ({ id }) => !edit.removedFragments.includes(id)
    ),
    prompts: replace(content.prompts, edited),
    importedStates: edit.importedStates ?? content.importedStates
  }
}

/** Plans an import of files. */
export const planFiles = (home: WorkspaceId, content: WorkspaceContent, texts: Texts, overwrite = false) =>
  Result.flatMap(parseFiles(texts), (files) => planImport(home, content, files, { now, newId, overwrite }))

/**
 * Imports files. Files overwrite edits of the workspace. Returns the edit, the changes, and the content after the
 * import.
 */
export const importFiles = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: Texts
): FileImport & { readonly edit: ContentEdit; readonly content: WorkspaceContent } => {
  const [edit, imported] = Result.getOrThrow(planFiles(workspace, content, texts, true))
  return { ...imported, edit, content: applyEdit(content, edit) }
}

/** Makes a workspace with the content that a first import of these files creates. */
export const makeImported = (files: Readonly<Record<string, string>>) => {
  const home = newId<WorkspaceId>()
  const texts: Texts = new Map(Object.entries(files))
  return { home, texts, content: importFiles(home, toWorkspaceContent(archive()), texts).content }
}

/** Exports a workspace into a directory. Returns the files of the directory after the export. */
export const exportFiles = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: Texts,
  overwrite = false
): Texts => {
  const { textsToWrite, pathsToRemove } = Result.getOrThrow(planExport(workspace, content, texts, overwrite))
  return new Map([...[...texts].filter(([path]) => !pathsToRemove.includes(path)), ...textsToWrite])
}
