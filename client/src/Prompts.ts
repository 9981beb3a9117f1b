import type { CallOptions, ResolvedOptions } from "./Options.ts"
import type { PromptReference, ResolvedFor } from "./PromptReference.ts"
import type {
  ListParams,
  PageParams,
  Prompt,
  PromptResponse,
  PromptSummary,
  Single,
  Source,
  Version,
  VersionSummary
} from "./Resources.ts"
import type { Call, List } from "./Results.ts"

/** Calls that read the versions of a prompt. */
export interface Versions {
  /** Lists a prompt's versions, highest number first, without their content. */
  list(prompt: string | PromptReference, params?: PageParams, options?: CallOptions): List<VersionSummary>
  /** Gets one version of a prompt. Rejects with a `NotFoundError` if the prompt has no such version. */
  get(prompt: string | PromptReference, version: number, options?: CallOptions): Call<Single<Version>>
}

/**
 * Calls that read the prompts of the key's workspace. The calls reject with a `PromptClientError`, or with a `TypeError`
 * or `RangeError` if an argument is invalid.
 *
 * A call addresses a prompt by its name, by its id, or by a constant that `pull` has generated. Unlike an id, a name can
 * be the same in several workspaces. Archived prompts have no name.
 */
export interface Prompts {
  /** Lists prompts, most recently updated first, without archived prompts. */
  list(params?: ListParams, options?: CallOptions): List<PromptSummary>
  /** Gets one prompt. Rejects with a `NotFoundError` if the workspace has no such prompt. */
  get(prompt: string | PromptReference, options?: CallOptions): Call<Single<Prompt>>
  /**
   * Gets one prompt with its fragments appended. Rejects with a `NotFoundError` if the workspace has no such prompt.
   *
   * While the service is not available, the call resolves to the cached text, to the text in the bundle or to the
   * `fallback`, in this order. `source` says where the text comes from. After a 401 or 403, the call rejects, because a
   * revoked key must not get a text.
   *
   * @example
   * ```ts
   * const client = new PromptClient({ cache: {} })
   * const { data } = await client.prompts.getResolved("support-agent", { timeout: 2_000 })
   * const text = fillSlots(data.resolved_content, { shop: "Acme" })
   * ```
   */
  getResolved<const Reference extends string | PromptReference>(
    prompt: Reference,
    options?: ResolvedOptions
  ): Call<Single<ResolvedFor<Reference>, Source>, PromptResponse | undefined>
  /** Calls that read the versions of a prompt. */
  readonly versions: Versions
}
