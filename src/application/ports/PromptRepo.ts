import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { FolderId } from "../../domain/FolderId.ts"
import type { Page, PageOfItems } from "../../domain/Page.ts"
import type { Prompt, PromptId, PromptNotFound, PromptSummary, PromptType } from "../../domain/Prompt.ts"
import type { ResolutionSource, ResolvedTooLarge } from "../../domain/Resolution.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { Version, VersionNotFound, VersionNumber, VersionSummary } from "../../domain/Version.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Selects prompts of a workspace; an absent field excludes no prompt. `tag` is a tag's exact name. */
export interface PromptFilter {
  readonly folder_id?: FolderId | undefined
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}

/**
 * Port: the prompts of a workspace, read only. Every method sees only the given workspace: a prompt of another
 * workspace is not found, a folder or tag of another workspace matches nothing, and a fragment of another workspace is
 * left out.
 */
export class PromptRepo extends Context.Service<
  PromptRepo,
  {
    /**
     * Returns one page of the prompts that are not archived and match the filter, ordered by `updated_at`, then id,
     * both descending. `total` is the number of all matching prompts, from the same snapshot. Any text is a valid
     * `tag`; a page past the end is empty.
     */
    readonly list: (
      workspace: WorkspaceId,
      filter: PromptFilter,
      page: Page
    ) => Effect.Effect<PageOfItems<PromptSummary>, Unavailable>
    /** Returns the items of the page that `list` returns, without counting all matching prompts. */
    readonly listPage: (
      workspace: WorkspaceId,
      filter: PromptFilter,
      page: Page
    ) => Effect.Effect<ReadonlyArray<PromptSummary>, Unavailable>
    /** Returns one prompt, even if it is archived. Its tags are ordered by name. */
    readonly get: (
      workspace: WorkspaceId,
      id: PromptId
    ) => Effect.Effect<Prompt, PromptNotFound | Unavailable>
    /**
     * Returns the input of a prompt's resolution. The fragments are ordered by `position`, then by the id of the join
     * row. If the contents together exceed `sizes.sourceBytes`, either this read or the later resolution fails with
     * `ResolvedTooLarge`.
     */
    readonly getSource: (
      workspace: WorkspaceId,
      id: PromptId
    ) => Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge | Unavailable>
    /**
     * Returns one page of a prompt's versions that were created at `oldest` or later, highest number first. `total` is
     * the number of all these versions.
     */
    readonly listVersions: (
      workspace: WorkspaceId,
      id: PromptId,
      oldest: Timestamp | undefined,
      page: Page
    ) => Effect.Effect<PageOfItems<VersionSummary>, PromptNotFound | Unavailable>
    /** Returns one version. Fails with `VersionNotFound` if the version was created before `oldest`. */
    readonly getVersion: (
      workspace: WorkspaceId,
      id: PromptId,
      number: VersionNumber,
      oldest: Timestamp | undefined
    ) => Effect.Effect<Version, VersionNotFound | Unavailable>
  }
>()("prompt-retrieval/PromptRepo") {}
