import * as Struct from "effect/Struct"
import type { Problem } from "../../domain/workspace/Problem.ts"
import type { Fragment, PromptFragment, WorkspacePrompt } from "../../domain/workspace/Workspace.ts"
import type { WorkspaceContent } from "../../domain/workspace/WorkspaceContent.ts"

/** The fields of a prompt that its file states unchanged. */
const promptFields = [
  "title",
  "description",
  "current_content",
  "prompt_type",
  "target_model",
  "intent",
  "is_favorite",
  "sort_order"
] as const

/** The part of a prompt's state that a file describes (docs/prompts-as-files.md). */
export interface PromptState extends Pick<WorkspacePrompt, (typeof promptFields)[number]> {
  readonly kind: "prompt"
  /** The name of the folder; null if the prompt is in no folder. */
  readonly folder: string | null
  /** The names of the tags, sorted and without duplicates. */
  readonly tags: ReadonlyArray<string>
  /** The fragments to append, in their order. */
  readonly fragments: ReadonlyArray<Pick<PromptFragment, "fragment_id" | "variable_overrides">>
}

/** The state of a fragment: all fields except its id. */
export interface FragmentState extends Omit<Fragment, "id"> {
  readonly kind: "fragment"
}

export type ContentState = PromptState | FragmentState

/** The path of a file, and the id in its front matter. `file_id` is null if the front matter has no id. */
export interface FilePlace {
  /** The path relative to the directory, with slashes as separators. */
  readonly path: string
  readonly file_id: string | null
}

/**
 * A file that describes a prompt or a fragment. Before `matchFiles`, `id` is the id that a new prompt or fragment would
 * get. After `matchFiles`, `id` is the id of the prompt or fragment that the file describes.
 */
export interface ContentFile extends FilePlace {
  readonly id: string
  readonly state: ContentState
}

export interface ContentItem {
  readonly id: string
  readonly isArchived: boolean
  readonly state: ContentState
}

/**
 * Returns the key of a prompt or fragment. The key contains the kind, because a prompt and a fragment may have the same
 * id.
 */
export const toKey = (kind: ContentState["kind"], id: string): string => `${kind} ${id}`

export const toFileKey = ({ id, state }: Pick<ContentFile, "id" | "state">): string => toKey(state.kind, id)

export const getName = (state: ContentState): string => (state.kind === "prompt" ? state.title : state.name)

/** Returns the content of a prompt or fragment, which is the body of its file. */
export const getContent = (state: ContentState): string =>
  state.kind === "prompt" ? state.current_content : state.content

/** A change that an import of files makes. `path` is null if no file describes the prompt or fragment. */
export interface FileChange {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly path: string | null
  readonly name: string
  /**
   * `new version` means that the content of an existing prompt changes. Any other difference between a file and an
   * existing prompt or fragment is `changed`.
   */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
  /**
   * `before` is null for a new prompt or fragment; `after` is null if the prompt is archived or the fragment is
   * removed.
   */
  readonly before: ContentState | null
  readonly after: ContentState | null
}

/**
 * An import of files, or an export into their directory, failed because files are invalid. Neither the workspace nor
 * the files changed. `problems` contains the first problems, and `count` is the number of all problems. The path of a
 * problem starts with the path of its file.
 */
export interface InvalidFiles {
  readonly _tag: "InvalidFiles"
  readonly problems: ReadonlyArray<Problem>
  readonly count: number
}
export const InvalidFiles = (problems: ReadonlyArray<Problem>, count = problems.length): InvalidFiles => ({
  _tag: "InvalidFiles",
  problems,
  count
})

/** The content that files are made from. Versions and histories are not needed. */
export interface FileSource extends Pick<WorkspaceContent, "folders" | "tags" | "fragments"> {
  readonly prompts: ReadonlyArray<Omit<WorkspacePrompt, "versions">>
}

/** Returns the fragments and prompts of a workspace by key, archived prompts included. */
export const readItems = (source: FileSource): ReadonlyMap<string, ContentItem> => {
  const folders = new Map<string, string>(source.folders.map(({ id, name }) => [id, name]))
  const tagNames = new Map(source.tags.map(({ id, name }) => [id, name]))
  const items: ReadonlyArray<ContentItem> = [
    ...source.fragments.map(({ id, name, content }) => ({
      id,
      isArchived: false,
      state: { kind: "fragment", name, content } as const
    })),
    ...source.prompts.map((prompt) => ({
      id: prompt.id,
      isArchived: prompt.is_archived,
      state: {
        kind: "prompt",
        ...Struct.pick(prompt, promptFields),
        folder: folders.get(prompt.folder_id ?? "") ?? null,
        tags: prompt.tags.flatMap((tag) => tagNames.get(tag) ?? []).sort(),
        fragments: prompt.fragments.map(Struct.pick(["fragment_id", "variable_overrides"]))
      } as const
    }))
  ]
  return new Map(items.map((item) => [toFileKey(item), item]))
}
