import type { PromptRepo } from "../application/ports/PromptRepo.ts"
import { type ContractTest, ContractTests, type LoadWorkspace } from "./contract.ts"
import { addContentTests } from "./promptContentTests.ts"
import { addListTests } from "./promptListTests.ts"
import { addNameTests } from "./promptNameTests.ts"

/**
 * Makes the contract suite of `PromptRepo`. Every adapter of the project passes the suite. Expected results that a test
 * does not state come from the in-memory adapter.
 *
 * @param load Stores a workspace with its content. Each test makes workspaces with new ids.
 */
export const makePromptRepoTests = <R>(
  load: LoadWorkspace<R>
): ReadonlyArray<ContractTest<PromptRepo | R>> => {
  const suite = new ContractTests<PromptRepo | R>()
  addListTests(suite, load)
  addContentTests(suite, load)
  addNameTests(suite, load)
  return suite.tests
}
