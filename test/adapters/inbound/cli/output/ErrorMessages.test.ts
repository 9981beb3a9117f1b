import { assert, it } from "@effect/vitest"
import { toExitError } from "../../../../../src/adapters/inbound/cli/output/ErrorMessages.ts"
import { InvalidContent } from "../../../../../src/domain/WorkspaceContent.ts"

it("the error about an invalid archive shows the number of problems, the first 100 problems, and the number of further problems", () => {
  const problems = Array.from({ length: 102 }, (_, index) => ({
    path: `tags[${index}]`,
    message: "is wrong"
  }))
  const { message } = toExitError(InvalidContent(problems), {}) as Error
  const listed =
    /^nothing was imported; the archive has 102 problems:\n(tags\[\d+\]: is wrong\n){100}… and 2 more$/
  assert.match(message, listed)
})
