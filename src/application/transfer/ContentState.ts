import type { Fragment, PromptFragment, WorkspacePrompt } from "../../domain/Workspace.ts"

/** The fields of a prompt that `PromptState` contains unchanged. */
export const promptFields = [
  "title",
  "description",
  "current_content",
  "prompt_type",
  "target_model",
  "intent",
  "is_favorite",
  "sort_order"
] as const

/** The part of a prompt's state that a file describes. */
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
interface FragmentState extends Omit<Fragment, "id"> {
  readonly kind: "fragment"
}

export type ContentState = PromptState | FragmentState

export const getName = (state: ContentState): string => (state.kind === "prompt" ? state.title : state.name)

/** Returns the content of a prompt or fragment: the body of its file. */
export const getContent = (state: ContentState): string =>
  state.kind === "prompt" ? state.current_content : state.content
