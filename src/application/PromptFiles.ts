import * as Equal from "effect/Equal"
import type { FolderId, PromptId, TagId } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../domain/Version.ts"
import type { Archive, ArchiveFragment, ArchivePrompt, Fault } from "./Archive.ts"
import type {
  ContentEdit,
  CurrentPrompt,
  PromptEdit,
  PromptRow,
  WorkspaceContent
} from "./WorkspaceContent.ts"

type Fragment = typeof ArchiveFragment.Type

/** A prompt as its file has it (docs/prompts-as-files.md); what a file does not say, the workspace keeps. */
export interface PromptFile
  extends Pick<
    ArchivePrompt,
    | "id"
    | "title"
    | "description"
    | "current_content"
    | "prompt_type"
    | "target_model"
    | "intent"
    | "is_favorite"
    | "sort_order"
  > {
  /** Of the file, in its directory. */
  readonly path: string
  /** The folder's name; null outside any. */
  readonly folder: string | null
  /** Names of tags. */
  readonly tags: ReadonlyArray<string>
  /** The fragments to append, in their order. */
  readonly fragments: ReadonlyArray<
    Pick<ArchivePrompt["fragments"][number], "fragment_id" | "variable_overrides">
  >
}

/** A fragment as its file has it. */
export interface FragmentFile extends Fragment {
  readonly path: string
}

/** All the files of a directory. */
export interface PromptFiles {
  readonly prompts: ReadonlyArray<PromptFile>
  readonly fragments: ReadonlyArray<FragmentFile>
}

/** What an import of files does to a prompt or a fragment; `path` is null for what has no file. */
export interface FileChange {
  readonly kind: "prompt" | "fragment"
  readonly id: string
  readonly path: string | null
  readonly name: string
  /** A change of a prompt's content is a new version; any other change of it, and of a fragment, is none. */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
}

/** Files that were refused, and so have changed nothing; a fault's path begins with its file's. */
export interface BadFiles {
  readonly _tag: "BadFiles"
  readonly faults: ReadonlyArray<Fault>
}
export const BadFiles = (faults: ReadonlyArray<Fault>): BadFiles => ({ _tag: "BadFiles", faults })

/** What files are made of: a workspace's content, whatever it holds of histories. */
export interface FileSource extends Pick<Archive, "folders" | "tags" | "fragments"> {
  readonly prompts: ReadonlyArray<Omit<ArchivePrompt, "versions">>
}

/** A workspace's current state as files would have it; archived prompts have none. `pathOf` names each file. */
export const filesOf = (
  archive: FileSource,
  pathOf: {
    readonly prompt: (prompt: FileSource["prompts"][number], folder: string | null) => string
    readonly fragment: (fragment: Fragment) => string
  }
): PromptFiles => {
  const folders = new Map(archive.folders.map(({ id, name }) => [id, name]))
  const tags = new Map(archive.tags.map(({ id, name }) => [id, name]))
  return {
    fragments: archive.fragments.map((fragment) => ({ ...fragment, path: pathOf.fragment(fragment) })),
    prompts: archive.prompts
      .filter(({ is_archived }) => !is_archived)
      .map((prompt) => {
        const folder = prompt.folder_id === null ? null : folders.get(prompt.folder_id)!
        return {
          path: pathOf.prompt(prompt, folder),
          folder,
          id: prompt.id,
          title: prompt.title,
          description: prompt.description,
          current_content: prompt.current_content,
          prompt_type: prompt.prompt_type,
          target_model: prompt.target_model,
          intent: prompt.intent,
          is_favorite: prompt.is_favorite,
          sort_order: prompt.sort_order,
          tags: prompt.tags.map((id) => tags.get(id)!).sort(),
          fragments: prompt.fragments.map(({ fragment_id, variable_overrides }) => ({
            fragment_id,
            variable_overrides
          }))
        }
      })
  }
}

const duplicates = (
  files: ReadonlyArray<{ readonly id: string; readonly path: string }>
): ReadonlyArray<Fault> =>
  [...Map.groupBy(files, ({ id }) => id).values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => ({ path, message: `has the id of ${first!.path}` }))
  )

/** Faults that show only where files are held against each other. */
export const faultsOfFiles = ({ prompts, fragments }: PromptFiles): ReadonlyArray<Fault> => [
  ...duplicates(fragments),
  ...duplicates(prompts)
]

/** The things of a workspace that files know by name, and new ones for names that it lacks. */
const byName = <A extends { readonly id: string; readonly name: string }>(
  items: ReadonlyArray<A>,
  make: (name: string) => A
) => {
  const all = new Map<string, A>()
  for (const item of items) if (!all.has(item.name)) all.set(item.name, item)
  const added: Array<A> = []
  return {
    added,
    get: (name: string): A => {
      const found = all.get(name)
      if (found !== undefined) return found
      const made = make(name)
      all.set(name, made)
      added.push(made)
      return made
    }
  }
}

/** What the pure merge needs from outside. */
export interface MergeContext {
  readonly now: Timestamp
  readonly newId: () => string
}

/** The file's fragments as rows: those of the prompt where they are the same, else the same rows in a new order. */
const usesOf = (
  file: PromptFile,
  existing: ArchivePrompt["fragments"],
  newId: () => string
): ArchivePrompt["fragments"] => {
  const said = existing.map(({ fragment_id, variable_overrides }) => ({ fragment_id, variable_overrides }))
  if (Equal.equals(said, file.fragments)) return existing
  const free = [...existing]
  return file.fragments.map((use, index) => {
    const at = free.findIndex(({ fragment_id }) => fragment_id === use.fragment_id)
    const id = at === -1 ? newId() : free.splice(at, 1)[0]!.id
    return { ...use, id, position: index + 1 }
  })
}

/** A version of a prompt's new content, the child of its current version. */
const importedVersion = (
  { current_version, current_content }: PromptRow,
  { current_id, last }: CurrentPrompt["history"],
  { now, newId }: MergeContext
): ArchivePrompt["versions"][number] => ({
  id: newId() as VersionId,
  version_number: (Math.max(current_version, 0, last?.version_number ?? 0) + 1) as VersionNumber,
  content: current_content,
  change_summary: "",
  change_source: "import",
  parent_version_id: current_id ?? (last !== null && last.version_number > current_version ? last.id : null),
  metadata: {},
  created_at: now
})

const noHistory: CurrentPrompt["history"] = { current_id: null, last: null }

/** The row of a prompt, without its lists. */
const rowOf = ({ tags: _, fragments: __, history: ___, ...row }: CurrentPrompt): PromptRow => row

/**
 * The edit that makes a workspace what files say: each file's prompt or fragment is as the file says, a changed body is
 * a new version, a prompt without a file is archived, and a fragment without one goes unless an archived prompt still
 * has it. The edit names only what differs from the files.
 */
export const mergeFiles = (
  content: WorkspaceContent,
  files: PromptFiles,
  context: MergeContext
): { readonly edit: ContentEdit; readonly changes: ReadonlyArray<FileChange> } => {
  const { now, newId } = context
  const folderNames = new Map(content.folders.map(({ id, name }) => [id, name]))
  const folders = byName(content.folders, (name) => ({ id: newId() as FolderId, name }))
  const tags = byName(content.tags, (name) => ({ id: newId() as TagId, name, color: "#808080" }))
  const changes: Array<FileChange> = []
  const edits: Array<PromptEdit> = []

  /** The folder that the prompt is in, where several have the name. */
  const folderOf = (file: PromptFile, existing: CurrentPrompt | undefined): FolderId | null => {
    if (file.folder === null) return null
    const own = existing?.folder_id
    return own != null && folderNames.get(own) === file.folder ? own : folders.get(file.folder).id
  }

  const mergePrompt = (file: PromptFile, existing: CurrentPrompt | undefined): void => {
    const { path, folder: _, tags: names, fragments: __, ...said } = file
    const base: CurrentPrompt = existing ?? {
      ...said,
      current_version: 0,
      folder_id: null,
      is_archived: false,
      created_at: now,
      updated_at: now,
      tags: [],
      fragments: [],
      history: noHistory
    }
    const tagIds = [...new Set(names)].map((name) => tags.get(name).id)
    const sameTags = tagIds.length === base.tags.length && tagIds.every((id) => base.tags.includes(id))
    const merged: CurrentPrompt = {
      ...base,
      ...said,
      folder_id: folderOf(file, existing),
      is_archived: false,
      tags: sameTags ? base.tags : tagIds,
      fragments: usesOf(file, base.fragments, newId)
    }
    if (existing !== undefined && Equal.equals(merged, existing)) return
    const isNewContent = existing === undefined || merged.current_content !== existing.current_content
    const version = isNewContent ? importedVersion(merged, base.history, context) : undefined
    changes.push({
      kind: "prompt",
      id: file.id,
      path,
      name: file.title,
      change: existing === undefined ? "added" : isNewContent ? "new version" : "changed"
    })
    edits.push({
      row: {
        ...rowOf(merged),
        current_version: version?.version_number ?? merged.current_version,
        updated_at: now
      },
      tags: merged.tags === base.tags ? undefined : merged.tags,
      fragments: merged.fragments === base.fragments ? undefined : merged.fragments,
      version
    })
  }

  const archivePrompt = (prompt: CurrentPrompt): void => {
    if (prompt.is_archived) return
    changes.push({ kind: "prompt", id: prompt.id, path: null, name: prompt.title, change: "archived" })
    edits.push({
      row: { ...rowOf(prompt), is_archived: true, updated_at: now },
      tags: undefined,
      fragments: undefined,
      version: undefined
    })
  }

  const knownFragments = new Map(content.fragments.map((fragment) => [fragment.id, fragment]))
  const fragments = files.fragments.flatMap(({ path, ...fragment }) => {
    const known = knownFragments.get(fragment.id)
    if (known !== undefined && Equal.equals(known, fragment)) return []
    const change = known === undefined ? "added" : "changed"
    changes.push({ kind: "fragment", id: fragment.id, path, name: fragment.name, change })
    return [fragment]
  })

  const promptFiles = new Set(files.prompts.map(({ id }) => id as string))
  const knownPrompts = new Map(content.prompts.map((prompt) => [prompt.id, prompt]))
  for (const file of files.prompts) mergePrompt(file, knownPrompts.get(file.id as PromptId))
  const unlisted = content.prompts.filter(({ id }) => !promptFiles.has(id))
  for (const prompt of unlisted) archivePrompt(prompt)

  const stillUsed = new Set(
    unlisted.flatMap(({ fragments }) => fragments.map(({ fragment_id }) => fragment_id))
  )
  const fragmentFiles = new Set(files.fragments.map(({ id }) => id))
  const removedFragments = content.fragments.flatMap(({ id, name }) => {
    if (fragmentFiles.has(id) || stillUsed.has(id)) return []
    changes.push({ kind: "fragment", id, path: null, name, change: "removed" })
    return [id]
  })
  return {
    edit: { folders: folders.added, tags: tags.added, fragments, removedFragments, prompts: edits },
    changes
  }
}
