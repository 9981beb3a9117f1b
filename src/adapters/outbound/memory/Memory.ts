import * as Layer from "effect/Layer"
import * as Keys from "./MemoryKeyStore.ts"
import * as Prompts from "./MemoryPromptRepo.ts"
import { MemoryState } from "./MemoryState.ts"
import type { KeyStore } from "../../../application/ports/KeyStore.ts"
import type { PromptRepo } from "../../../application/ports/PromptRepo.ts"

/** Provides PromptRepo and KeyStore on one in-memory store, and the store itself, which starts empty. */
export const layer: Layer.Layer<PromptRepo | KeyStore | MemoryState> = Layer.mergeAll(
  Prompts.layer,
  Keys.layer
).pipe(Layer.provideMerge(MemoryState.layer))
