import type * as Layer from "effect/Layer"
import type { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import type { LoadWorkspace } from "../../src/testing/contract.ts"
import { makePromptRepoTests } from "../../src/testing/promptRepoTests.ts"
import { runContract } from "./runContract.ts"

/** Tests what every adapter of `PromptRepo` must do. */
export const testPromptRepo = <R, E>(
  name: string,
  load: LoadWorkspace<R>,
  layer: Layer.Layer<PromptRepo | R, E>
): void => runContract(`PromptRepo: ${name}`, makePromptRepoTests(load), layer)
