import * as Context from "effect/Context"
import type { PromptId } from "../domain/Prompt.ts"
import type { ResolutionSource } from "../domain/Resolution.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"

/**
 * Names the prompt that a request resolves, and holds the prompt's source if the key lookup has read it: one statement
 * for both saves a round trip. The source is used only after the caller is admitted, and only for this request.
 */
export class SourcePrefetch {
  readonly prompt: PromptId
  #entry: { readonly workspace: WorkspaceId; readonly source: ResolutionSource } | undefined

  constructor(prompt: PromptId) {
    this.prompt = prompt
  }

  /** Stores the source of `prompt`. `workspace` is the workspace of the request's key. */
  store(workspace: WorkspaceId, source: ResolutionSource): void {
    this.#entry = { workspace, source }
  }

  /** Returns the stored source if it belongs to this workspace and this prompt, otherwise `undefined`. */
  find(workspace: WorkspaceId, prompt: PromptId): ResolutionSource | undefined {
    return this.#entry?.workspace === workspace && this.prompt === prompt ? this.#entry.source : undefined
  }
}

/**
 * The prefetch of the current request. `undefined`, except for HTTP requests for the resolved content of a well-formed
 * prompt id.
 */
export const CurrentSourcePrefetch = Context.Reference<SourcePrefetch | undefined>(
  "prompt-retrieval/CurrentSourcePrefetch",
  { defaultValue: () => undefined }
)
