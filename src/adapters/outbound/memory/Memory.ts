import * as Layer from "effect/Layer"
import * as Keys from "./MemoryKeyStore.ts"
import * as Prompts from "./MemoryPromptRepo.ts"
import * as Titles from "./MemoryPromptTitles.ts"
import { MemoryState } from "./MemoryState.ts"
import type { KeyStore } from "../../../application/ports/KeyStore.ts"
import type { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { PromptTitles } from "../../../application/ports/PromptTitles.ts"

/** Provides PromptRepo, PromptTitles and KeyStore on one in-memory store, and the store itself, which starts empty. */
export const layer: Layer.Layer<PromptRepo | PromptTitles | KeyStore | MemoryState> = Layer.mergeAll(
  Prompts.layer,
  Titles.layer,
  Keys.layer
).pipe(Layer.provideMerge(MemoryState.layer))
