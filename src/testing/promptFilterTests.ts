import * as assert from "node:assert/strict"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as model from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { archive, folder, prompt, tag } from "./archives.ts"
import { type ContractTests, type LoadWorkspace, wholeList } from "./contract.ts"
import { storable } from "./generatedArchives.ts"

const list = (workspace: WorkspaceId, filter: PromptFilter) =>
  Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, wholeList))

const titles = (workspace: WorkspaceId, filter: PromptFilter) =>
  Effect.map(list(workspace, filter), ({ items }) => items.map(({ title }) => title).sort())

/** Adds the tests of the filters of lists. */
export const addFilterTests = <R>(suite: ContractTests<PromptRepo | R>, load: LoadWorkspace<R>): void => {
  suite.add("any text is a valid tag, and only exact names match", () =>
    Effect.gen(function* () {
      const names = [
        "production",
        "Production",
        " production",
        "production ",
        "größe",
        "gro\u0308ße",
        "😀",
        "\ufffd",
        "a",
        "%",
        "_",
        "*",
        "\\",
        "'",
        '"',
        "' or 1=1 --",
        "null",
        "__proto__",
        "{a,b}",
        "x".repeat(256)
      ]
      const tags = names.map((name) => tag(name))
      const stored = archive({
        tags,
        prompts: tags.map(({ id, name }) => prompt({ title: name, tags: [id] }))
      })
      yield* load(stored)
      for (const name of names) {
        assert.deepStrictEqual(yield* titles(stored.workspace.id, { tag: name }), [name])
      }
      const unmatched = [
        "",
        " ",
        "\0",
        "a\0",
        "\0a",
        "\ud800",
        "\udc00",
        "a\ud800",
        "PRODUCTION",
        "GRÖSSE",
        "produc",
        "production  ",
        "undefined",
        "constructor",
        "x".repeat(255),
        "x".repeat(257),
        "x".repeat(300),
        "😀".repeat(300),
        "x".repeat(100_000)
      ]
      for (const name of unmatched) {
        assert.deepStrictEqual(yield* list(stored.workspace.id, { tag: name }), { items: [], total: 0 })
      }
    })
  )

  suite.add("list returns a prompt with several tags once", () =>
    Effect.gen(function* () {
      const tags = ["a", "b", "c"].map((name) => tag(name))
      const stored = archive({ tags, prompts: [prompt({ tags: tags.map(({ id }) => id) })] })
      yield* load(stored)
      for (const filter of [{}, { tag: "a" }, { tag: "c" }]) {
        assert.deepStrictEqual(yield* list(stored.workspace.id, filter), {
          items: model.listPrompts(stored, {}),
          total: 1
        })
      }
    })
  )

  suite.addProperty(
    "list finds a prompt by any tag name and not by similar names",
    Arbitrary.schema(Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(256))),
    Effect.fnUntraced(function* (name) {
      const label = tag(storable(name))
      const stored = archive({ tags: [label], prompts: [prompt({ tags: [label.id] })] })
      yield* load(stored)
      const workspace = stored.workspace.id
      assert.strictEqual((yield* list(workspace, { tag: label.name })).total, 1)
      for (const similar of [name, `${name}\0`, `${name}\ud800`, `${name} `, name.slice(1)]) {
        assert.strictEqual((yield* list(workspace, { tag: similar })).total, similar === label.name ? 1 : 0)
      }
    })
  )

  suite.add("a prompt outside any folder has folder_id null and is in no folder's list", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const drawer = folder()
      const [inside, outside] = [prompt({ folder_id: drawer.id, title: "inside" }), prompt()]
      const stored = archive({ folders: [drawer], prompts: [inside, outside] })
      yield* load(stored)
      assert.strictEqual((yield* repo.get(stored.workspace.id, outside.id)).folder_id, null)
      assert.strictEqual((yield* repo.get(stored.workspace.id, inside.id)).folder_id, drawer.id)
      assert.deepStrictEqual(yield* titles(stored.workspace.id, { folder_id: drawer.id }), ["inside"])
    })
  )
}
