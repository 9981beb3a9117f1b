import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { maxTitlesPerRead, PromptTitles } from "../../../src/application/ports/PromptTitles.ts"
import { truncateTitle } from "../../../src/domain/PromptNames.ts"
import { compareByUpdate } from "../../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { MemoryState } from "../../../src/adapters/outbound/memory/MemoryState.ts"

export const layer: Layer.Layer<PromptTitles, never, MemoryState> = Layer.effect(
  PromptTitles,
  Effect.map(MemoryState, ({ workspaces }) =>
    PromptTitles.of({
      listAfter: (workspace, after) =>
        Effect.sync(() =>
          (workspaces.get(workspace)?.prompts ?? [])
            .filter(
              (prompt) => !prompt.is_archived && (after === undefined || compareByUpdate(prompt, after) > 0)
            )
            .sort(compareByUpdate)
            .slice(0, maxTitlesPerRead)
            .map(({ id, title, updated_at }) => ({ id, title: truncateTitle(title), updated_at }))
        )
    })
  )
)
