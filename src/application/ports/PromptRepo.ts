import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { Page, PageOfItems } from "../../domain/Page.ts"
import type {
  FolderId,
  Prompt,
  PromptId,
  PromptNotFound,
  PromptSummary,
  PromptType
} from "../../domain/Prompt.ts"
import type { PromptReference } from "../../domain/PromptName.ts"
import type { PageTooLarge, ResolutionSource, ResolvedTooLarge } from "../../domain/Resolution.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { Version, VersionNotFound, VersionNumber, VersionSummary } from "../../domain/Version.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Selects prompts of a workspace. An absent field excludes no prompt. `tag` is a tag's exact name. */
export interface PromptFilter {
  readonly folder_id?: FolderId | undefined
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}

/** A prompt that is not archived, with its shortest name (`toName`). */
export interface NamedPrompt {
  readonly id: PromptId
  readonly name: string
  readonly title: string
  readonly description: string
}

/** The input for resolving one of several prompts. */
export interface FoundSource {
  /** The position of the prompt among the requested prompts, counted from 0. */
  readonly index: number
  /** The shortest name of the prompt (`toName`). The name of an archived prompt is not valid. */
  readonly name: string
  readonly source: Result.Result<ResolutionSource, ResolvedTooLarge>
}

/**
 * Port: reads the prompts of a workspace. Every method sees only the given workspace. A prompt of another workspace is
 * not found, a folder or tag of another workspace matches no prompt, and a fragment of another workspace is left out.
 *
 * A name is looked up among the prompts that are not archived. If several prompts have the same slug, the slug alone
 * denotes the oldest prompt (by `created_at`, then id). A slug with digits denotes the prompt with this slug and the
 * smallest id that starts with the digits. The time of a lookup does not depend on the number of prompts.
 */
export class PromptRepo extends Context.Service<
  PromptRepo,
  {
    /**
     * Returns one page of the prompts that are not archived and match the filter, ordered by `updated_at`, then id,
     * both descending. `total` is the number of all matching prompts, from the same snapshot. `tag` can be any text. A
     * page past the end is empty.
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
    /** Returns a page of the prompts that are not archived, with their names, in the order of `list`. */
    readonly listNamed: (
      workspace: WorkspaceId,
      page: Page
    ) => Effect.Effect<ReadonlyArray<NamedPrompt>, Unavailable>
    /** Returns one prompt. An archived prompt is found only by its id. The tags of the prompt are ordered by name. */
    readonly get: (
      workspace: WorkspaceId,
      prompt: PromptReference
    ) => Effect.Effect<Prompt, PromptNotFound | Unavailable>
    /**
     * Returns the input for resolving a prompt. The fragments are ordered by `position`, then by the id of the join row.
     * If the contents and overrides together exceed `sizes.sourceBytes`, either this read or the later resolution fails
     * with `ResolvedTooLarge`.
     */
    readonly getSource: (
      workspace: WorkspaceId,
      prompt: PromptReference
    ) => Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge | Unavailable>
    /**
     * Returns the inputs for resolving up to 100 prompts, in the given order. Leaves out prompts that do not exist. If a
     * prompt's contents and overrides exceed `sizes.sourceBytes`, its `source` is a failure. Can fail with
     * `PageTooLarge` if the contents and overrides of all other prompts together exceed `sizes.pageSourceBytes`.
     */
    readonly getSources: (
      workspace: WorkspaceId,
      prompts: ReadonlyArray<PromptReference>
    ) => Effect.Effect<ReadonlyArray<FoundSource>, PageTooLarge | Unavailable>
    /** Returns a page of the versions created at `oldest` or later, highest number first, and their total number. */
    readonly listVersions: (
      workspace: WorkspaceId,
      prompt: PromptReference,
      oldest: Timestamp | undefined,
      page: Page
    ) => Effect.Effect<PageOfItems<VersionSummary>, PromptNotFound | Unavailable>
    /** Returns one version. Fails with `VersionNotFound` if the version was created before `oldest`. */
    readonly getVersion: (
      workspace: WorkspaceId,
      prompt: PromptReference,
      number: VersionNumber,
      oldest: Timestamp | undefined
    ) => Effect.Effect<Version, VersionNotFound | Unavailable>
  }
>()("prompt-retrieval/application/ports/PromptRepo") {}
