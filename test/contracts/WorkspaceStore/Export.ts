import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { PromptFragment, PromptVersion, StoredKey, WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import { loadArchive, archives, exportArchive, sample, user } from "../../support/archives.ts"
import { type ContractTests, assertReads, inExportOrder } from "./support.ts"

export const testExport = (it: ContractTests): void => {
  it.effect.prop(
    "exportWorkspace exports an imported workspace in a fixed order, and importing the export changes nothing",
    { original: archives },
    Effect.fnUntraced(function* ({ original }) {
      yield* loadArchive(original)
      const { users: _, ...content } = inExportOrder(original)
      const expected = { ...content, users: [] }
      assert.deepStrictEqual(yield* exportArchive(original.workspace.id), expected)
      yield* loadArchive(expected)
      assert.deepStrictEqual(yield* exportArchive(original.workspace.id), expected)
      yield* assertReads(original)
    }),
    { arbitrary: { runs: 8, maxShrinks: 50 } }
  )

  it.effect(
    "exportWorkspace exports the keys of a workspace and the owners of these keys, but no other keys and users, with the fields in a fixed order",
    () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        yield* loadArchive(sample().archive)
        yield* loadArchive({ ...own, users: [...own.users, user()] })
        const api_keys = own.api_keys.filter(({ workspace_id }) => workspace_id !== null)
        const exported = yield* exportArchive(own.workspace.id)
        assert.deepStrictEqual(exported, inExportOrder({ ...own, api_keys }))
        // docs/archive-format.md shows the order of the fields.
        for (const [item, { fields }] of [
          [exported.api_keys[0]!, StoredKey],
          [exported.prompts[0]!, WorkspacePrompt],
          [exported.prompts.find(({ title }) => title === "Greeting")!.fragments[0]!, PromptFragment],
          [exported.prompts[0]!.versions[0]!, PromptVersion]
        ] as const)
          assert.deepStrictEqual(Object.keys(item), Object.keys(fields))
      })
  )
}
