import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { PromptTitle } from "../../domain/Prompt.ts"
import { PromptNames } from "../../domain/PromptNames.ts"
import type { Caller } from "../access/Admission.ts"
import { maxTitlesPerRead, PromptTitles } from "../ports/PromptTitles.ts"
import type { Unavailable } from "../ports/Unavailable.ts"
import { withSpanIfTraced } from "../support/Observability.ts"

/** The number of titles that are added in a row before other requests may proceed. */
const titlesPerTurn = 200

/** The names of prompts, for protocols in which callers request prompts by name. */
export class NamedPrompts extends Context.Service<
  NamedPrompts,
  {
    /** Reads the names of all prompts of the caller's workspace that are not archived. */
    readonly readNames: (caller: Caller) => Effect.Effect<PromptNames, Unavailable>
  }
>()("prompt-retrieval/NamedPrompts") {
  static readonly layer: Layer.Layer<NamedPrompts, never, PromptTitles> = Layer.effect(
    NamedPrompts,
    Effect.gen(function* () {
      const titles = yield* PromptTitles
      return NamedPrompts.of({
        readNames: withSpanIfTraced("NamedPrompts.readNames")(
          Effect.fnUntraced(function* ({ workspaceId }) {
            const names = new PromptNames()
            let read: ReadonlyArray<PromptTitle>
            let last: PromptTitle | undefined
            do {
              read = yield* titles.listAfter(workspaceId, last)
              for (const [index, title] of read.entries()) {
                names.add(title)
                if (index % titlesPerTurn === titlesPerTurn - 1) yield* Effect.yieldNow
              }
              last = read.at(-1)
            } while (read.length === maxTitlesPerRead)
            return names
          })
        )
      })
    })
  )
}
