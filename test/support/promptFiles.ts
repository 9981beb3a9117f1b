import * as Result from "effect/Result"
import { compare, isDifferent, type Pair } from "../../src/application/transfer/Comparison.ts"
import type { PromptState } from "../../src/application/transfer/ContentState.ts"
import { planExport } from "../../src/application/transfer/FileExport.ts"
import { type FileImport, planImport } from "../../src/application/transfer/FileImport.ts"
import { type ContentFile, parsePromptFiles, type Texts } from "../../src/application/transfer/PromptFile.ts"
import type { WorkspacePrompt } from "../../src/domain/Workspace.ts"
import { type ContentEdit, emptyHistory, type WorkspaceContent } from "../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { compareIds, instant, newId, toWorkspaceContent } from "./archives.ts"

type Source = Omit<WorkspaceContent, "prompts" | "importedStates"> & {
  readonly workspace: { readonly id: WorkspaceId }
  readonly prompts: ReadonlyArray<WorkspacePrompt>
}

/** Returns the files that an export of a workspace writes into an empty directory. */
export const renderFiles = (source: Source): Texts =>
  Result.getOrThrow(planExport(source.workspace.id, toWorkspaceContent(source), new Map())).textsToWrite

export const parseFiles = (workspace: WorkspaceId, texts: Texts): ReadonlyArray<ContentFile> =>
  Result.getOrThrow(parsePromptFiles(workspace, texts))

export const firstPrompt = (files: ReadonlyArray<ContentFile>): PromptState =>
  files.flatMap(({ state }) => (state.kind === "prompt" ? [state] : []))[0]!

/** Returns the pairs of a workspace and its files that have different states. */
export const findDifferences = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: Texts
): ReadonlyArray<Pair> =>
  Result.getOrThrow(compare(content, parseFiles(workspace, texts))).filter(isDifferent)

/** Returns the content of a workspace after an edit. */
const applyEdit = (content: WorkspaceContent, edit: ContentEdit): WorkspaceContent => {
  const replace = <A extends { readonly id: string }>(items: ReadonlyArray<A>, written: ReadonlyArray<A>) => [
    ...new Map([...items, ...written].toSorted(compareIds).map((item) => [item.id, item])).values()
  ]
  const prompts = new Map(content.prompts.map((prompt) => [prompt.id, prompt]))
  const edited = edit.prompts.map(({ row, tags, fragments }) => {
    const existing = prompts.get(row.id)
    return {
      ...row,
      tags: tags ?? existing?.tags ?? [],
      fragments: fragments ?? existing?.fragments ?? [],
      history: existing?.history ?? emptyHistory
    }
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

/** Imports files, and undoes edits of the workspace. Returns the edit, the changes, and the content after the import. */
export const importFiles = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  texts: Texts
): FileImport & { readonly edit: ContentEdit; readonly content: WorkspaceContent } => {
  const context = { now: instant("2030-01-01T00:00:00.000Z"), newId }
  const plan = planImport(content, parseFiles(workspace, texts), true, context)
  const [edit, imported] = Result.getOrThrow(plan)
  return { ...imported, edit, content: applyEdit(content, edit) }
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
