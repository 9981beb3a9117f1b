/** The kinds of prompt (SPEC.md section 2.2). */
export type PromptType = "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"

/** A label of a prompt; `color` is `#rrggbb`. */
export interface Tag {
  readonly id: string
  readonly name: string
  readonly color: string
}

/** An item of the prompt list: no content, tags or folder. Times are ISO 8601, UTC, with milliseconds. */
export interface PromptSummary {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly intent: string
  readonly current_version: number
  readonly created_at: string
  readonly updated_at: string
}

/** A whole prompt; `folder_id` is null outside any folder, `current_content` may contain `{{name}}` slots. */
export interface Prompt {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly current_content: string
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly intent: string
  readonly current_version: number
  readonly folder_id: string | null
  readonly is_favorite: boolean
  readonly is_archived: boolean
  readonly sort_order: number
  readonly tags: ReadonlyArray<Tag>
  readonly created_at: string
  readonly updated_at: string
}

/** A prompt ready to send to a model, its fragments inlined; slots that are left are yours: `fillSlots`. */
export interface ResolvedPrompt {
  readonly id: string
  readonly title: string
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly resolved_content: string
  readonly fragment_count: number
}

/** An item of the version list: no content. */
export interface VersionSummary {
  readonly version_number: number
  readonly change_summary: string
  readonly change_source: string
  readonly created_at: string
}

/** One version, whole; `parent_version_id` is null for the first. */
export interface Version {
  readonly id: string
  readonly prompt_id: string
  readonly version_number: number
  readonly content: string
  readonly change_summary: string
  readonly change_source: string
  readonly parent_version_id: string | null
  readonly metadata: { readonly [name: string]: Json }
  readonly created_at: string
}

export type Json = null | number | boolean | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Which page a list answered, and how many items there are on all pages. */
export interface PageMeta {
  readonly page: number
  readonly per_page: number
  readonly total: number
}

/**
 * Where a result came from: `fresh` from the service, just now; `cached` from the cache, within its `ttl`; `stale` from
 * the cache, older than that.
 */
export type Source = "fresh" | "cached" | "stale"

/** A single resource. `source` is not enumerable: it is in no JSON, comparison or spread of the envelope. */
export interface Single<A> {
  readonly data: A
  readonly source: Source
}

/** One page of a list. `source` is not enumerable, as in `Single`. */
export interface Page<A> {
  readonly data: ReadonlyArray<A>
  readonly meta: PageMeta
  readonly source: Source
}

/** Which page: `page` counts from 1, `per_page` is 1 to 100 (20 unless told). */
export interface PageParams {
  readonly page?: number | undefined
  readonly per_page?: number | undefined
}

/** Which prompts: filters add up; `tag` is a tag's name (SPEC.md section 4.1). */
export interface ListParams extends PageParams {
  readonly folder_id?: string | undefined
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}
