import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { listAllPrompts } from "../../../../../src/adapters/inbound/cli/input/NameLookup.ts"
import type { Prompts } from "../../../../../src/application/reading/Prompts.ts"
import { paginate } from "../../../../../src/domain/Page.ts"
import type { PromptSummary } from "../../../../../src/domain/Prompt.ts"
import { prompt, workspace } from "../../../../support/archives.ts"

it("listAllPrompts returns every prompt that is not archived, although another prompt is archived after each read", async () => {
  const all = Array.from({ length: 250 }, () => prompt() as unknown as PromptSummary)
  const listed = [...all]
  const prompts = {
    list: (_caller, _filter, page) =>
      Effect.sync(() => {
        const read = paginate([...listed], page)
        listed.shift()
        return read
      })
  } as Pick<Prompts["Service"], "list"> as Prompts["Service"]
  const operator = { workspaceId: workspace().id, tier: "team" }
  expect(await Effect.runPromise(listAllPrompts(prompts, operator, {}))).toEqual(all)
})
