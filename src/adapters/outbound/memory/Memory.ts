import * as Layer from "effect/Layer"
import type { KeyStore } from "../../../application/ports/KeyStore.ts"
import type { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { WorkspaceStore } from "../../../application/ports/WorkspaceStore.ts"
import * as Keys from "./MemoryKeyStore.ts"
import * as Prompts from "./MemoryPromptRepo.ts"
import { State } from "./MemoryState.ts"
import * as Workspaces from "./MemoryWorkspaceStore.ts"

/** PromptRepo, KeyStore and WorkspaceStore over one store that starts empty, and the store itself. */
export const layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore | State> = Layer.mergeAll(
  Prompts.layer,
  Keys.layer,
  Workspaces.layer
).pipe(Layer.provideMerge(State.layer))
