import * as Layer from "effect/Layer"
import * as Keys from "./MemoryKeyStore.ts"
import * as Prompts from "./MemoryPromptRepo.ts"
import * as Titles from "./MemoryPromptTitles.ts"
import { MemoryState } from "./MemoryState.ts"
import * as Workspaces from "./MemoryWorkspaceStore.ts"
import { Actor } from "../../../application/administration/Actor.ts"
import type { KeyStore } from "../../../application/ports/KeyStore.ts"
import { Observations } from "../../../application/ports/Observations.ts"
import type { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { PromptTitles } from "../../../application/ports/PromptTitles.ts"
import type { WorkspaceStore } from "../../../application/ports/WorkspaceStore.ts"

/**
 * Provides PromptRepo, PromptTitles, KeyStore and WorkspaceStore on one in-memory store, and the store itself. The
 * store starts empty. The audit log names the actor `unknown`.
 */
export const layer: Layer.Layer<PromptRepo | PromptTitles | KeyStore | WorkspaceStore | MemoryState> =
  Layer.mergeAll(Prompts.layer, Titles.layer, Keys.layer, Workspaces.layer).pipe(
    Layer.provide(Layer.succeed(Actor, "unknown")),
    Layer.provideMerge(MemoryState.layer)
  )

export const ignoredObservationsLayer: Layer.Layer<Observations> = Layer.succeed(Observations, {
  recordRateLimitRejection: () => {},
  recordCacheLookup: () => {},
  recordOutageResponse: () => {},
  setOutageSecondsLeft: () => {}
})
