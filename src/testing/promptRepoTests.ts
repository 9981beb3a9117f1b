import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import { PromptNotFound } from "../domain/Prompt.ts"
import { VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import {
  archive,
  awkwardTexts,
  fragment,
  fragmentBinding,
  prompt,
  sample,
  tag,
  version,
  versionNumber
} from "./archives.ts"
import { type ContractTest, type LoadWorkspace, makePropertyTest } from "./contract.ts"
import { archives } from "./generatedArchives.ts"
import { makeNameTest } from "./promptNameTest.ts"
import { assertReads, listReferences, wholeList } from "./promptReads.ts"

const list = (workspace: WorkspaceId, filter: PromptFilter = {}) =>
  Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, wholeList))

const nothing = { items: [], total: 0 }

/**
 * Makes the contract suite of `PromptRepo`. Every adapter of the project passes the suite. Expected results that a test
 * does not state come from the in-memory adapter.
 *
 * @param load Stores a workspace with its content. Each test makes workspaces with new ids.
 */
export const makePromptRepoTests = <R>(
  load: LoadWorkspace<R>
): ReadonlyArray<ContractTest<PromptRepo | R>> => [
  makePropertyTest(
    "every method of PromptRepo returns what the in-memory adapter returns, for any workspace, prompt, filter, page and cutoff",
    archives,
    (archive) => Effect.andThen(load(archive), assertReads(archive))
  ),

  {
    name: "PromptRepo never returns anything of another workspace, even one with the same content",
    run: Effect.gen(function* () {
      const repo = yield* PromptRepo
      const [own, other, unknown] = [sample().archive, sample().archive, archive()]
      yield* load(own)
      yield* load(other)
      const workspace = own.workspace.id
      for (const { id } of other.folders)
        assert.deepStrictEqual(yield* list(workspace, { folder_id: id }), nothing)
      for (const { id, versions } of other.prompts) {
        assert.deepStrictEqual(yield* Effect.flip(repo.get(workspace, id)), PromptNotFound)
        assert.deepStrictEqual(yield* Effect.flip(repo.getSource(workspace, id)), PromptNotFound)
        const versionsOf = repo.listVersions(workspace, id, undefined, wholeList)
        assert.deepStrictEqual(yield* Effect.flip(versionsOf), PromptNotFound)
        for (const { version_number } of versions) {
          const read = repo.getVersion(workspace, id, version_number, undefined)
          assert.deepStrictEqual(yield* Effect.flip(read), VersionNotFound)
        }
      }
      yield* assertReads(own, listReferences(other))
      yield* assertReads(unknown, listReferences(own))
    })
  },

  {
    name: "PromptRepo.list accepts any text as a tag, and matches only the exact name",
    run: Effect.gen(function* () {
      const names = [
        ...["production", "Production", " production", "production ", "größe", "gro\u0308ße", "😀", "\ufffd"],
        ...["a", "%", "_", "*", "\\", "'", '"', "' or 1=1 --", "null", "__proto__", "{a,b}", "x".repeat(256)]
      ]
      const tags = names.map((name) => tag(name))
      const prompts = tags.map(({ id, name }) => prompt({ title: name, tags: [id] }))
      const stored = archive({ tags, prompts })
      yield* load(stored)
      for (const name of names) {
        const { items } = yield* list(stored.workspace.id, { tag: name })
        assert.deepStrictEqual(
          items.map(({ title }) => title),
          [name]
        )
      }
      for (const name of [
        ...["", " ", "\0", "a\0", "\0a", "\ud800", "\udc00", "a\ud800", "PRODUCTION", "GRÖSSE", "produc"],
        ...["production  ", "undefined", "constructor", "x".repeat(255), "x".repeat(257), "😀".repeat(300)],
        "x".repeat(100_000)
      ])
        assert.deepStrictEqual(yield* list(stored.workspace.id, { tag: name }), nothing)
    })
  },

  {
    name: "PromptRepo.get returns a prompt's tags ordered by the code points of their names",
    run: Effect.gen(function* () {
      const repo = yield* PromptRepo
      const tags = [" ", "!", "10", "9", "B", "Z", "a", "a b", "ab", "b", "z", "ß", "ä", "\uffee", "😀"].map(
        (name) => tag(name)
      )
      const one = prompt({ tags: tags.toReversed().map(({ id }) => id) })
      const stored = archive({ tags: [...tags.slice(5), ...tags.slice(0, 5)], prompts: [one] })
      yield* load(stored)
      assert.deepStrictEqual((yield* repo.get(stored.workspace.id, one.id)).tags, tags)
    })
  },

  {
    name: "PromptRepo returns every text byte for byte",
    run: Effect.gen(function* () {
      const repo = yield* PromptRepo
      for (const text of [...awkwardTexts, "long ä😀\n".repeat(70_000)]) {
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
        assert.ok((yield* repo.get(stored.workspace.id, one.id)).current_content === text)
        yield* assertReads(stored)
      }
    })
  },

  {
    name: "PromptRepo returns metadata and overrides unchanged, with any names and values",
    run: Effect.gen(function* () {
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
      const { fragments } = yield* repo.getSource(stored.workspace.id, one.id)
      assert.deepStrictEqual(fragments, [
        { content: "{{x}}", variable_overrides: freeForm },
        { content: "{{x}}", variable_overrides: {} }
      ])
      for (const [number, metadata] of [freeForm, {}].entries()) {
        const read = repo.getVersion(stored.workspace.id, one.id, versionNumber(number + 1), undefined)
        assert.deepStrictEqual((yield* read).metadata, metadata)
      }
    })
  },

  makeNameTest(load)
]
