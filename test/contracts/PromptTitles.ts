import { assert, layer as suite } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { maxTitlesPerRead, PromptTitles } from "../../src/application/ports/PromptTitles.ts"
import { maxSlugSourceLength, truncateTitle } from "../../src/domain/PromptNames.ts"
import type { LoadWorkspace } from "../../src/testing/contract.ts"
import { archive, archives, instant, prompt, workspace } from "../support/archives.ts"
import * as model from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"

/** Tests what every adapter of `PromptTitles` must do. */
export const testPromptTitles = <R, E>(
  name: string,
  load: LoadWorkspace<R>,
  layer: Layer.Layer<PromptTitles | R, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`PromptTitles: ${name}`, (it) => {
    it.effect.prop(
      "for any prompt of any workspace, listAfter returns the titles that follow the prompt in the list of the in-memory adapter",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        const titles = yield* PromptTitles
        yield* load(archive)
        const whole = model
          .listPrompts(archive, {})
          .map(({ id, title, updated_at }) => ({ id, title: truncateTitle(title), updated_at }))
        assert.deepStrictEqual(yield* titles.listAfter(archive.workspace.id, undefined), whole)
        for (const [index, { id, updated_at }] of whole.entries()) {
          assert.deepStrictEqual(
            yield* titles.listAfter(archive.workspace.id, { id, updated_at }),
            whole.slice(index + 1)
          )
        }
      }),
      { arbitrary: { runs: 12, maxShrinks: 100 } }
    )

    it.effect("listAfter truncates titles, and returns no titles of another workspace", () =>
      Effect.gen(function* () {
        const titles = yield* PromptTitles
        const long = "😀".repeat(maxSlugSourceLength + 1)
        const prompts = [prompt({ title: long })]
        const own = archive({ workspace: workspace(), prompts })
        yield* load(own)
        const read = yield* titles.listAfter(own.workspace.id, undefined)
        assert.deepStrictEqual(
          read.map(({ title }) => title),
          ["😀".repeat(maxSlugSourceLength)]
        )
        assert.deepStrictEqual(yield* titles.listAfter(workspace().id, undefined), [])
      })
    )

    it.effect(`listAfter returns at most ${maxTitlesPerRead} titles`, () =>
      Effect.gen(function* () {
        const titles = yield* PromptTitles
        const count = maxTitlesPerRead + 3
        const prompts = Array.from({ length: count }, (_, index) =>
          prompt({
            title: `Title ${index}`,
            updated_at: instant(new Date(1_767_312_000_000 + index).toISOString())
          })
        )
        const own = archive({ workspace: workspace(), prompts })
        yield* load(own)
        const first = yield* titles.listAfter(own.workspace.id, undefined)
        const rest = yield* titles.listAfter(own.workspace.id, first.at(-1))
        assert.deepStrictEqual(
          [first.length, rest.map(({ title }) => title)],
          [maxTitlesPerRead, ["Title 2", "Title 1", "Title 0"]]
        )
      })
    )
  })
