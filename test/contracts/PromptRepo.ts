import type * as Layer from "effect/Layer"
import type { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import type { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { makePromptRepoTests } from "../../src/testing/promptRepoTests.ts"
import { loadArchive } from "../support/archives.ts"
import { runContract } from "./runContract.ts"

/** Tests what every adapter of `PromptRepo` must do. */
export const testPromptRepo = <E>(name: string, layer: Layer.Layer<PromptRepo | WorkspaceStore, E>): void =>
  runContract(`PromptRepo: ${name}`, makePromptRepoTests(loadArchive), layer)
