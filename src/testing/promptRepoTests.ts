import type { PromptRepo } from "../application/ports/PromptRepo.ts"
import { type ContractTest, ContractTests, type LoadWorkspace } from "./contract.ts"
import { addContentTests } from "./promptContentTests.ts"
import { addListTests } from "./promptListTests.ts"

/**
 * Makes the contract suite of `PromptRepo`, which every adapter of the project passes. The in-memory adapter provides
 * the expected results that a test does not state.
 *
 * @param load Stores the content of a workspace, which each test makes with new ids.
 */
export const makePromptRepoTests = <R>(
  load: LoadWorkspace<R>
): ReadonlyArray<ContractTest<PromptRepo | R>> => {
  const suite = new ContractTests<PromptRepo | R>()
  addListTests(suite, load)
  addContentTests(suite, load)
  return suite.tests
}
