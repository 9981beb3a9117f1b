/** The type of a prompt. */
export type PromptType = "system" | "user" | "assistant" | "template" | "few-shot" | "chain-of-thought"

/** A label of a prompt. */
export interface Tag {
  readonly id: string
  /** The value for the filter `tag` of the prompt list. */
  readonly name: string
  /** Color in the form `#rrggbb`. */
  readonly color: string
}

/** An item of the prompt list, without content, tags and folder. Timestamps are in ISO 8601, in UTC with milliseconds. */
export interface PromptSummary {
  readonly id: string
  readonly title: string
  readonly description: string
  readonly prompt_type: PromptType
  /** Model that the prompt is written for. */
  readonly target_model: string
  readonly intent: string
  /** Version number of `current_content`. */
  readonly current_version: number
  readonly created_at: string
  readonly updated_at: string
}

/** A prompt with its content and tags. */
export interface Prompt extends PromptSummary {
  /** Body of the prompt. May contain `{{name}}` slots. */
  readonly current_content: string
  /** Id of the folder that contains the prompt, or null. */
  readonly folder_id: string | null
  readonly is_favorite: boolean
  /** True if the prompt is archived. Lists omit archived prompts. */
  readonly is_archived: boolean
  /** Position of the prompt in the editor. */
  readonly sort_order: number
  /** Tags of the prompt, ordered by name. */
  readonly tags: ReadonlyArray<Tag>
}

/** An item of the version list, without content. */
export interface VersionSummary {
  /** Number of the version, starting at 1 for each prompt. */
  readonly version_number: number
  readonly change_summary: string
  readonly change_source: string
  readonly created_at: string
}

/** One version of a prompt, with its content. */
export interface Version extends VersionSummary {
  readonly id: string
  readonly prompt_id: string
  readonly content: string
  /** Id of the version from which this version was made, or null. */
  readonly parent_version_id: string | null
  /** Free-form JSON object. */
  readonly metadata: { readonly [name: string]: Json }
}

/** Any JSON value. */
export type Json = null | number | boolean | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

/** Describes a page of a list. */
export interface PageMeta {
  /** Page number, starting at 1. */
  readonly page: number
  /** Maximum number of items per page. */
  readonly per_page: number
  readonly total: number
}

/**
 * The source of a result:
 *
 * - `fresh`: a response of the service to this call
 * - `live`: the client's memory, while a request of `live` waits for changes
 * - `cached`: the client's cache, within `ttl`
 * - `stale`: the client's cache, after `ttl`, or a response that the service sent without its database
 * - `bundled`: the bundle, because the service is not available or because of the mode `bundle-first`
 * - `fallback`: the `fallback` of the call, because the service is not available and no other text exists
 */
export type Source = "fresh" | "live" | "cached" | "stale" | "bundled" | "fallback"

/** The sources of a response of the service, from the network or from the client's cache. */
export type ServiceSource = "fresh" | "cached" | "stale"

/**
 * Identifies the text that a result contains, for example in a trace. The properties are not enumerable, so they are
 * absent from JSON, comparisons and spreads of the result.
 */
export interface Provenance<From extends Source = ServiceSource> {
  /** The name or id by which the call addressed the prompt. Undefined for lists of prompts. */
  readonly name: string | undefined
  /** The source of the result. */
  readonly source: From
  /**
   * Version number of the prompt's content. Undefined for lists, for fallbacks, and if the service's store reports no
   * version.
   */
  readonly version: number | undefined
  /**
   * ETag of the response. Equal bodies have equal ETags. Undefined for bundled texts, fallbacks, and texts that
   * `prefetch` or `live` has loaded.
   */
  readonly etag: string | undefined
  /**
   * Milliseconds since the service confirmed the text. The time starts with the request, and includes the `Age` of the
   * response. Undefined for bundled texts and fallbacks.
   */
  readonly age: number | undefined
  /** `X-Request-Id` of the response that confirmed the text. Undefined for bundled texts and fallbacks. */
  readonly requestId: string | undefined
}

/** The HTTP response that confirmed a result. */
export interface PromptResponse {
  /** HTTP status code: 304 if the service confirmed a cached text. */
  readonly status: number
  /** Response headers. Their names are case-insensitive. */
  readonly headers: { get(name: string): string | null }
}

/** A single resource. */
export interface Single<A, From extends Source = ServiceSource> extends Provenance<From> {
  readonly data: A
}

/** One page of a list. */
export interface Page<A> extends Provenance {
  readonly data: ReadonlyArray<A>
  readonly meta: PageMeta
}

/** Selects a page of a list. */
export interface PageParams {
  /** Page number, starting at 1. Default: 1. */
  readonly page?: number | undefined
  /** Maximum number of items per page, at least 1. The service reduces larger numbers to 100. Default: 20. */
  readonly per_page?: number | undefined
}

/** Selects prompts of the list. Filters are combined with AND. */
export interface ListParams extends PageParams {
  /** Only prompts in the folder with this id. */
  readonly folder_id?: string | undefined
  /** Only prompts with a tag of this name. */
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}
