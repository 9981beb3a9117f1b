/** The role of a prompt. */
export type PromptType = "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"

/** A label of a prompt. */
export interface Tag {
  /** The tag's id, a UUID. */
  readonly id: string
  /** The tag's name, which the `tag` filter of the prompt list matches. */
  readonly name: string
  /** `#rrggbb`. */
  readonly color: string
}

/** An item of the prompt list, without content, tags and folder. */
export interface PromptSummary {
  /** The prompt's id, a UUID. */
  readonly id: string
  /** The prompt's name. */
  readonly title: string
  /** What the prompt does, for human readers. */
  readonly description: string
  /** The role of the prompt. */
  readonly prompt_type: PromptType
  /** The model that the prompt is written for. */
  readonly target_model: string
  /** What the prompt is meant to achieve. */
  readonly intent: string
  /** Version number of the current content. */
  readonly current_version: number
  /** ISO 8601, UTC, with milliseconds. */
  readonly created_at: string
  /** ISO 8601, UTC, with milliseconds. */
  readonly updated_at: string
}

/** A prompt with its content and tags. */
export interface Prompt {
  /** The prompt's id, a UUID. */
  readonly id: string
  /** The prompt's name. */
  readonly title: string
  /** What the prompt does, for human readers. */
  readonly description: string
  /** The prompt's own content, without its fragments. May contain `{{name}}` slots. */
  readonly current_content: string
  /** The role of the prompt. */
  readonly prompt_type: PromptType
  /** The model that the prompt is written for. */
  readonly target_model: string
  /** What the prompt is meant to achieve. */
  readonly intent: string
  /** Version number of `current_content`. */
  readonly current_version: number
  /** Id of the folder that contains the prompt; null if the prompt is in no folder. */
  readonly folder_id: string | null
  /** True if the prompt is marked as a favorite in the editor. */
  readonly is_favorite: boolean
  /** True if the prompt is archived. Archived prompts are not listed. */
  readonly is_archived: boolean
  /** The prompt's position in the editor. */
  readonly sort_order: number
  /** The prompt's tags, sorted by name. */
  readonly tags: ReadonlyArray<Tag>
  /** ISO 8601, UTC, with milliseconds. */
  readonly created_at: string
  /** ISO 8601, UTC, with milliseconds. */
  readonly updated_at: string
}

/** A prompt with its fragments appended. Fill the remaining slots with `fillSlots`, then send the text to a model. */
export interface ResolvedPrompt {
  /** The prompt's id, a UUID. */
  readonly id: string
  /** The prompt's name. */
  readonly title: string
  /** The role of the prompt. */
  readonly prompt_type: PromptType
  /** The model that the prompt is written for. */
  readonly target_model: string
  /** The prompt's content, followed by each of its fragments with the fragment's slots filled. */
  readonly resolved_content: string
  /** Number of appended fragments. */
  readonly fragment_count: number
}

/** An item of the version list, without content. */
export interface VersionSummary {
  /** Version number, starting at 1. */
  readonly version_number: number
  /** What changed, for human readers. */
  readonly change_summary: string
  /** What made the change, such as `manual` or `ai-improve`. */
  readonly change_source: string
  /** ISO 8601, UTC, with milliseconds. */
  readonly created_at: string
}

/** One version of a prompt, with its content. */
export interface Version {
  /** The version's id, a UUID. */
  readonly id: string
  /** The prompt's id, a UUID. */
  readonly prompt_id: string
  /** Version number, starting at 1. */
  readonly version_number: number
  /** The prompt's content in this version. */
  readonly content: string
  /** What changed, for human readers. */
  readonly change_summary: string
  /** What made the change, such as `manual` or `ai-improve`. */
  readonly change_source: string
  /** Id of the previous version; null for the first. */
  readonly parent_version_id: string | null
  /** Free-form data about the version. */
  readonly metadata: { readonly [name: string]: Json }
  /** ISO 8601, UTC, with milliseconds. */
  readonly created_at: string
}

/** Any JSON value. */
export type Json = null | number | boolean | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Pagination details. */
export interface PageMeta {
  /** Page number, starting at 1. */
  readonly page: number
  /** Maximum number of items per page. */
  readonly per_page: number
  /** Number of items on all pages. */
  readonly total: number
}

/**
 * Where a result comes from: `fresh` is a response of the service, `cached` a cache entry within its `ttl`, `stale` an
 * older cache entry.
 */
export type Source = "fresh" | "cached" | "stale"

/** A single resource. */
export interface Single<A> {
  readonly data: A
  /** Where the result comes from. Not enumerable, so absent from JSON, comparisons and spreads of the envelope. */
  readonly source: Source
}

/** One page of a list. */
export interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly meta: PageMeta
  /** Where the result comes from. Not enumerable, so absent from JSON, comparisons and spreads of the envelope. */
  readonly source: Source
}

/** Selects a page of a list. */
export interface PageParams {
  /** Page number, starting at 1. Default: 1. */
  readonly page?: number | undefined
  /** Maximum number of items per page, from 1; the service caps it at 100. Default: 20. */
  readonly per_page?: number | undefined
}

/** Selects prompts of the list. Filters are combined with AND. */
export interface ListParams extends PageParams {
  /** Only prompts in the folder with this id. */
  readonly folder_id?: string | undefined
  /** Only prompts with a tag of this name. */
  readonly tag?: string | undefined
  /** Only prompts of this type. */
  readonly type?: PromptType | undefined
}
