import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Page, Slice } from "../domain/Page.ts"
import type {
  FolderId,
  Prompt,
  PromptId,
  PromptNotFound,
  PromptSummary,
  PromptType,
  WorkspaceId
} from "../domain/Prompt.ts"
import type { ResolutionSource, ResolvedTooLarge } from "../domain/Resolution.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { Version, VersionNotFound, VersionNumber, VersionSummary } from "../domain/Version.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Which prompts of a workspace a list holds; what is absent does not filter. `tag` is a tag's exact name. */
export interface PromptFilter {
  readonly folder_id?: FolderId | undefined
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}

/**
 * Port: the prompts of a workspace, read only. Every method sees the given workspace alone: another's prompt is
 * not found, another's folder or tag matches nothing, another's fragment is left out.
 */
export class PromptRepo extends Context.Service<
  PromptRepo,
  {
    /**
     * One page of the prompts that are not archived and pass the filter, by `updated_at`, then id, both
     * descending, and how many pass it in all, from one snapshot. Any text is a valid `tag`; a page past the end
     * is empty. A `total` that the caller knows is given back, and nothing is counted.
     */
    readonly list: (
      workspace: WorkspaceId,
      filter: PromptFilter,
      page: Page,
      total?: number
    ) => Effect.Effect<Slice<PromptSummary>, Unavailable>
    /** One prompt, archived or not, its tags by name. */
    readonly get: (
      workspace: WorkspaceId,
      id: PromptId
    ) => Effect.Effect<Prompt, PromptNotFound | Unavailable>
    /**
     * What the prompt is resolved from, its fragments by `position`, then by the join row's id. Fails when the
     * fragments together are larger than `maxSourceBytes`. May fail when the resolved content is certain to be larger
     * than `maxResolvedBytes`.
     */
    readonly getSource: (
      workspace: WorkspaceId,
      id: PromptId
    ) => Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge | Unavailable>
    /** One page of the prompt's versions made at `oldest` or later, newest number first, and how many there are. */
    readonly listVersions: (
      workspace: WorkspaceId,
      id: PromptId,
      oldest: Timestamp | undefined,
      page: Page
    ) => Effect.Effect<Slice<VersionSummary>, PromptNotFound | Unavailable>
    /** One version, if it was made at `oldest` or later. */
    readonly getVersion: (
      workspace: WorkspaceId,
      id: PromptId,
      number: VersionNumber,
      oldest: Timestamp | undefined
    ) => Effect.Effect<Version, VersionNotFound | Unavailable>
  }
>()("prompt-retrieval/PromptRepo") {}
