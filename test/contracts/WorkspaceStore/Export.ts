import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
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
    "exportWorkspace exports the keys of a workspace and the owners of these keys, and no other keys and users",
    () =>
      Effect.gen(function* () {
        const { archive: own } = sample()
        yield* loadArchive(sample().archive)
        yield* loadArchive({ ...own, users: [...own.users, user()] })
        const api_keys = own.api_keys.filter(({ workspace_id }) => workspace_id !== null)
        assert.deepStrictEqual(yield* exportArchive(own.workspace.id), inExportOrder({ ...own, api_keys }))
      })
  )
}
