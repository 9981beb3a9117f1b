import * as Effect from "effect/Effect"
import type { PromptTitle } from "../../domain/Prompt.ts"
import { PromptNames } from "../../domain/PromptNames.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { maxTitlesPerRead, type PromptTitles } from "../ports/PromptTitles.ts"
import { withSpanIfTraced } from "../observability/Instrumentation.ts"

/** The number of titles that are added in a row before other requests may proceed. */
const titlesPerTurn = 200

/** Makes the function that reads the names of all prompts of a workspace, except archived prompts. */
export const makeNameReader = ({ listAfter }: PromptTitles["Service"]) =>
  withSpanIfTraced("NamedPrompts.readNames")(
    Effect.fnUntraced(function* (workspace: WorkspaceId) {
      const names = new PromptNames()
      let read: ReadonlyArray<PromptTitle>
      let last: PromptTitle | undefined
      do {
        read = yield* listAfter(workspace, last)
        for (const [index, title] of read.entries()) {
          names.add(title)
          if (index % titlesPerTurn === titlesPerTurn - 1) yield* Effect.yieldNow
        }
        last = read.at(-1)
      } while (read.length === maxTitlesPerRead)
      return names
    })
  )
