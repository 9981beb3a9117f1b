import type { Archive } from "../../src/application/formats/Archive.ts"
import type { PromptFilter } from "../../src/application/ports/PromptRepo.ts"
import type { Prompt, PromptSummary } from "../../src/domain/Prompt.ts"
import type { ResolutionSource } from "../../src/domain/Resolution.ts"
import type { Version, VersionSummary } from "../../src/domain/Version.ts"
import type { WorkspacePrompt } from "../../src/domain/Workspace.ts"

// The expected results of reads of an archive, computed as simply as possible and independently of all adapters.

/** Compares texts by code point, as UTF-8 and PostgreSQL's "C" collation order them. */
const compareCodePoints = (a: string, b: string): number => {
  const [left, right] = [[...a], [...b]].map((text) => text.map((char) => char.codePointAt(0)!))
  const at = left!.findIndex((code, index) => code !== right![index])
  return at === -1 ? left!.length - right!.length : left![at]! - (right![at] ?? -1)
}

const compareDescending = <A extends string | number>(a: A, b: A): number => (a === b ? 0 : a < b ? 1 : -1)

/** Returns all prompts that match a filter, in the order of the list. */
export const listPrompts = (archive: Archive, filter: PromptFilter): ReadonlyArray<PromptSummary> => {
  const { folder_id, tag, type } = filter
  const tagIds = archive.tags.filter(({ name }) => name === tag).map(({ id }) => id)
  let prompts = archive.prompts.filter(({ is_archived }) => !is_archived)
  if (folder_id !== undefined) prompts = prompts.filter((prompt) => prompt.folder_id === folder_id)
  if (tag !== undefined) prompts = prompts.filter(({ tags }) => tags.some((id) => tagIds.includes(id)))
  if (type !== undefined) prompts = prompts.filter(({ prompt_type }) => prompt_type === type)
  return prompts
    .toSorted((a, b) => compareDescending(a.id, b.id))
    .toSorted((a, b) => compareDescending(Date.parse(a.updated_at), Date.parse(b.updated_at)))
    .map(
      ({
        current_content: _content,
        folder_id: _folder,
        is_favorite: _favorite,
        is_archived: _archived,
        sort_order: _order,
        tags: _tags,
        fragments: _fragments,
        versions: _versions,
        ...summary
      }) => summary
    )
}

/** Returns a prompt of an archive as `PromptRepo.get` does. */
export const getPrompt = (archive: Archive, prompt: WorkspacePrompt): Prompt => {
  const { fragments: _fragments, versions: _versions, ...rest } = prompt
  const tags = archive.tags.filter(({ id }) => rest.tags.includes(id))
  return { ...rest, tags: tags.toSorted((a, b) => compareCodePoints(a.name, b.name)) }
}

/** Returns a prompt of an archive as `PromptRepo.getSource` does. */
export const getSource = (archive: Archive, prompt: WorkspacePrompt): ResolutionSource => {
  const { id, title, prompt_type, target_model, current_content, current_version } = prompt
  return {
    id,
    title,
    prompt_type,
    target_model,
    current_content,
    current_version,
    fragments: prompt.fragments
      .toSorted((a, b) => compareDescending(b.id, a.id))
      .toSorted((a, b) => a.position - b.position)
      .map(({ fragment_id, variable_overrides }) => ({
        content: archive.fragments.find((fragment) => fragment.id === fragment_id)!.content,
        variable_overrides
      }))
  }
}

/** Returns all versions of a prompt that were created at `oldest` or later, highest number first. */
export const listVersions = (prompt: WorkspacePrompt, oldest?: string): ReadonlyArray<Version> =>
  prompt.versions
    .filter(({ created_at }) => oldest === undefined || Date.parse(created_at) >= Date.parse(oldest))
    .toSorted((a, b) => b.version_number - a.version_number)
    .map((version) => ({
      ...version,
      prompt_id: prompt.id,
      metadata: version.metadata as Version["metadata"]
    }))

/** Converts a version to an item of the version list. */
export const toVersionSummary = (version: Version): VersionSummary => ({
  version_number: version.version_number,
  change_summary: version.change_summary,
  change_source: version.change_source,
  created_at: version.created_at
})
