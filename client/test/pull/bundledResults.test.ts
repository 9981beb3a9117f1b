import { assert, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { newId } from "../../../test/support/archives.ts"
import { renderBundle } from "../../src/pull/BundleFile.ts"
import { readPrompts } from "../../src/pull/PromptReader.ts"
import { FakeService } from "../../src/testing.ts"
import { serveFake } from "../serveFake.ts"
import { anyText } from "./bundles.ts"

const count = Arbitrary.map(Arbitrary.schema(Schema.Natural), (count) => count % 1_000)
const fields = Arbitrary.array(Arbitrary.all([anyText, anyText, anyText, count, count]), { maxLength: 3 })

it.effect.prop(
  "a bundled result has the data and the version of the result that the service returned to pull",
  { fields },
  ({ fields }) =>
    Effect.promise(async () => {
      const prompts = fields.map(([title, target_model, content, version, fragment_count]) => ({
        id: newId<string>(),
        title,
        target_model,
        prompt_type: "template",
        // A bundle with an unpaired surrogate in a content is invalid. In the other fields, JSON escapes unpaired
        // surrogates.
        content: content.toWellFormed(),
        version,
        fragment_count
      }))
      const service = new FakeService({ prompts })
      const server = await serveFake(service)
      try {
        const selection = { baseUrl: server.url, tag: undefined, type: undefined }
        const bundle = JSON.parse(renderBundle(await readPrompts(selection, "key_live_0")))
        for (const { id } of prompts) {
          const fresh = await service.connect().prompts.getResolved(id)
          const bundled = await service.connect({ bundle, mode: "bundle-first" }).prompts.getResolved(id)
          assert.deepStrictEqual([fresh.source, bundled.source], ["fresh", "bundled"])
          assert.strictEqual(JSON.stringify(bundled), JSON.stringify(fresh))
          assert.strictEqual(bundled.version, fresh.version)
        }
      } finally {
        await server.close()
      }
    }),
  { arbitrary: { runs: 50 } }
)
