import { createHash } from "node:crypto"
import { isObject } from "effect/Predicate"
import * as Struct from "effect/Struct"
import type { Fragment, PromptFragment, WorkspacePrompt } from "../../domain/Workspace.ts"
import type { ImportedState, WorkspaceContent } from "../../domain/WorkspaceContent.ts"

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

/** A prompt or a fragment of a workspace. */
export interface ContentItem {
  readonly id: string
  readonly isArchived: boolean
  readonly state: ContentState
}

/**
 * Returns the key of a prompt or fragment. The key contains the kind, because a prompt and a fragment may have the same
 * id.
 */
export const toKey = ({ kind, id }: Pick<ImportedState, "kind" | "id">): string => `${kind} ${id}`

export const getName = (state: ContentState): string => (state.kind === "prompt" ? state.title : state.name)

/** Returns the content of a prompt or fragment, which is the body of its file. */
export const getContent = (state: ContentState): string =>
  state.kind === "prompt" ? state.current_content : state.content

/** Sorts the members of an object by name, because PostgreSQL does not keep the member order of free-form JSON. */
const sortMembers = (_: string, value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value

/**
 * Returns the SHA-256 hash of a state in hexadecimal digits. Equal states have equal hashes, whether they come from a
 * file or from the database.
 */
export const hashState = (state: ContentState): string =>
  createHash("sha256").update(JSON.stringify(state, sortMembers)).digest("hex")

/** Returns the fragments and prompts of a workspace, archived prompts included. */
export const readItems = (content: WorkspaceContent): ReadonlyArray<ContentItem> => {
  const folders = new Map<string, string>(content.folders.map(({ id, name }) => [id, name]))
  const tagNames = new Map(content.tags.map(({ id, name }) => [id, name]))
  return [
    ...content.fragments.map(({ id, name, content }) => ({
      id,
      isArchived: false,
      state: { kind: "fragment", name, content } as const
    })),
    ...content.prompts.map((prompt) => ({
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
}
