import * as Layer from "effect/Layer"
import type { KeyStore } from "../../application/KeyStore.ts"
import type { PromptRepo } from "../../application/PromptRepo.ts"
import type { WorkspaceStore } from "../../application/WorkspaceStore.ts"
import * as Keys from "./KeyStore.ts"
import * as Prompts from "./PromptRepo.ts"
import { State } from "./State.ts"
import * as Workspaces from "./WorkspaceStore.ts"

/** The three ports over one store that starts empty, and the store itself. */
export const layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore | State> = Layer.mergeAll(
  Prompts.layer,
  Keys.layer,
  Workspaces.layer
).pipe(Layer.provideMerge(State.layer))
