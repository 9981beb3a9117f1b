import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { PromptTitle } from "../../domain/Prompt.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Port: the titles from which the names of a workspace's prompts are made. */
export class PromptTitles extends Context.Service<
  PromptTitles,
  {
    /**
     * Returns the titles of prompts that are not archived and come after `after`, in the order of lists: by
     * `updated_at`, then id, both descending. If `after` is undefined, starts with the first prompt. Returns at most
     * `maxTitlesPerRead` titles. Fewer titles mean that no more follow. Titles are truncated (`truncateTitle`). Sees
     * only the given workspace.
     */
    readonly listAfter: (
      workspace: WorkspaceId,
      after: Pick<PromptTitle, "id" | "updated_at"> | undefined
    ) => Effect.Effect<ReadonlyArray<PromptTitle>, Unavailable>
  }
>()("prompt-retrieval/PromptTitles") {}

/** The largest number of titles that one read returns. */
export const maxTitlesPerRead = 2_000
