import type { ResolutionSource } from "../domain/Resolution.ts"
import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as model from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import * as Schema from "effect/Schema"
import type { Archive } from "../application/transfer/Archive.ts"
import { PromptRepo } from "../application/ports/PromptRepo.ts"
import { type PromptId, PromptNotFound } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import { VersionNotFound } from "../domain/Version.ts"
import {
  archive,
  awkwardTexts,
  fragment,
  newId,
  prompt,
  tag,
  fragmentBinding,
  version,
  versionNumber
} from "./archives.ts"
import { assertPages, type ContractTests, type LoadWorkspace, wholeList, withUndefined } from "./contract.ts"
import { archives } from "./generatedArchives.ts"

/** Returns history cutoffs: `undefined`, and the time of each version of an archive. */
const makeCutoffs = (archive: Archive): ReadonlyArray<Timestamp | undefined> =>
  withUndefined([
    ...new Set(archive.prompts.flatMap(({ versions }) => versions.map(({ created_at }) => created_at)))
  ])

/** Returns a source without the number of its bytes, which only some stores give. */
export const withoutBytes = ({ bytes: _, ...source }: ResolutionSource): ResolutionSource => source

/** Adds the tests of prompts, their fragments and their versions. */
export const addContentTests = <R>(suite: ContractTests<PromptRepo | R>, load: LoadWorkspace<R>): void => {
  suite.addProperty(
    "PromptRepo.get, getSource and getVersion return what the in-memory adapter returns, for any workspace",
    archives,
    Effect.fnUntraced(function* (archive) {
      const repo = yield* PromptRepo
      yield* load(archive)
      const workspace = archive.workspace.id
      for (const prompt of archive.prompts) {
        assert.deepStrictEqual(yield* repo.get(workspace, prompt.id), model.getPrompt(archive, prompt))
        assert.deepStrictEqual(
          withoutBytes(yield* repo.getSource(workspace, prompt.id)),
          model.getSource(archive, prompt)
        )
        for (const version of model.listVersions(prompt)) {
          assert.deepStrictEqual(
            yield* repo.getVersion(workspace, prompt.id, version.version_number, undefined),
            version
          )
        }
      }
    })
  )

  suite.addProperty(
    "PromptRepo.listVersions and getVersion return what the in-memory adapter returns, for any cutoff",
    archives,
    Effect.fnUntraced(function* (archive) {
      const repo = yield* PromptRepo
      yield* load(archive)
      const workspace = archive.workspace.id
      for (const prompt of archive.prompts.slice(0, 3)) {
        for (const oldest of makeCutoffs(archive)) {
          const visible = model.listVersions(prompt, oldest)
          yield* assertPages(
            (page) => repo.listVersions(workspace, prompt.id, oldest, page),
            visible.map(model.toVersionSummary)
          )
          for (const version of prompt.versions) {
            const read = repo.getVersion(workspace, prompt.id, version.version_number, oldest)
            const expected = visible.find(({ id }) => id === version.id)
            if (expected === undefined) assert.deepStrictEqual(yield* Effect.flip(read), VersionNotFound)
            else assert.deepStrictEqual(yield* read, expected)
          }
        }
      }
    }),
    15
  )

  suite.add("PromptRepo fails with PromptNotFound or VersionNotFound for unknown prompts and versions", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const [one, two] = [
        prompt({ versions: [version(1), version(3)] }),
        prompt({ versions: [version(2), version(2147483647)] })
      ]
      const stored = archive({ prompts: [one, two] })
      yield* load(stored)
      const workspace = stored.workspace.id
      const unknown = newId<PromptId>()
      assert.deepStrictEqual(yield* Effect.flip(repo.get(workspace, unknown)), PromptNotFound)
      assert.deepStrictEqual(yield* Effect.flip(repo.getSource(workspace, unknown)), PromptNotFound)
      assert.deepStrictEqual(
        yield* Effect.flip(repo.listVersions(workspace, unknown, undefined, wholeList)),
        PromptNotFound
      )
      for (const [id, number] of [
        [unknown, 1],
        [one.id, 2],
        [one.id, 2147483647],
        [two.id, 1]
      ] as const) {
        assert.deepStrictEqual(
          yield* Effect.flip(repo.getVersion(workspace, id, versionNumber(number), undefined)),
          VersionNotFound
        )
      }
      assert.deepStrictEqual(
        yield* repo.getVersion(workspace, two.id, versionNumber(2147483647), undefined),
        model.listVersions(two)[0]!
      )
    })
  )

  suite.add("PromptRepo.get returns a prompt's tags ordered by the code points of their names", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const names = [" ", "!", "10", "9", "B", "Z", "a", "a b", "ab", "b", "z", "ß", "ä", "\uffee", "😀"].map(
        (name) => tag(name)
      )
      const one = prompt({ tags: names.toReversed().map(({ id }) => id) })
      const stored = archive({ tags: [...names.slice(5), ...names.slice(0, 5)], prompts: [one] })
      yield* load(stored)
      assert.deepStrictEqual((yield* repo.get(stored.workspace.id, one.id)).tags, names)
    })
  )

  suite.add("PromptRepo returns every text byte for byte", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const longest = "long ä😀\n".repeat(70_000)
      for (const text of [...awkwardTexts, longest]) {
        const [short, summary] = [text.slice(0, 256), text.slice(0, 8_000)]
        const snippet = fragment(text)
        const one = prompt({
          title: short,
          description: summary,
          current_content: text,
          target_model: short,
          intent: short,
          fragments: [fragmentBinding(snippet, 1, { variable_overrides: { text: summary } })],
          versions: [version(1, { content: text, change_summary: summary, change_source: short })]
        })
        const stored = archive({ fragments: [snippet], prompts: [one] })
        yield* load(stored)
        const workspace = stored.workspace.id
        assert.ok((yield* repo.get(workspace, one.id)).current_content === text)
        assert.deepStrictEqual(yield* repo.get(workspace, one.id), model.getPrompt(stored, one))
        assert.deepStrictEqual(
          withoutBytes(yield* repo.getSource(workspace, one.id)),
          model.getSource(stored, one)
        )
        assert.deepStrictEqual(
          (yield* repo.list(workspace, {}, wholeList)).items,
          model.listPrompts(stored, {})
        )
        assert.deepStrictEqual(
          yield* repo.getVersion(workspace, one.id, versionNumber(1), undefined),
          model.listVersions(one)[0]!
        )
      }
    })
  )

  suite.add("PromptRepo returns metadata and overrides unchanged, with any names and values", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const freeForm: Record<string, Schema.Json> = JSON.parse(
        `{"": 1, " ": "", "a.b": {"c": [[], {}, null, true, "\\ud83d\\ude00"]}, "__proto__": {"x": 1},
          "constructor": "y", "camelCase": 1, "snake_case": 2, "0": 0, "big": 9007199254740991,
          "small": 5e-324, "huge": 1.7976931348623157e308, "fraction": 0.1, "negative": -1.5}`
      )
      const snippet = fragment("{{x}}")
      const one = prompt({
        fragments: [
          fragmentBinding(snippet, 1, { variable_overrides: freeForm }),
          fragmentBinding(snippet, 2)
        ],
        versions: [version(1, { metadata: freeForm }), version(2)]
      })
      const stored = archive({ fragments: [snippet], prompts: [one] })
      yield* load(stored)
      const source = yield* repo.getSource(stored.workspace.id, one.id)
      assert.deepStrictEqual(source.fragments, [
        { content: "{{x}}", variable_overrides: freeForm },
        { content: "{{x}}", variable_overrides: {} }
      ])
      const read = (number: number) =>
        repo.getVersion(stored.workspace.id, one.id, versionNumber(number), undefined)
      assert.deepStrictEqual((yield* read(1)).metadata, freeForm)
      assert.deepStrictEqual((yield* read(2)).metadata, {})
    })
  )
}
