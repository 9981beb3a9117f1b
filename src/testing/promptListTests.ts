import { withoutBytes } from "./promptContentTests.ts"
import * as assert from "node:assert/strict"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as model from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import type { Archive } from "../application/transfer/Archive.ts"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import type { Page } from "../domain/Page.ts"
import { type FolderId, PromptNotFound } from "../domain/Prompt.ts"
import { VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import {
  archive,
  folder,
  fragment,
  instant,
  newId,
  prompt,
  sample,
  tag,
  fragmentBinding,
  version,
  versionNumber
} from "./archives.ts"
import { assertPages, type ContractTests, type LoadWorkspace, wholeList, withUndefined } from "./contract.ts"
import { archives, storable } from "./generatedArchives.ts"

const list = (workspace: WorkspaceId, filter: PromptFilter = {}, page: Page = wholeList) =>
  Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, page))

const listPage = (workspace: WorkspaceId, filter: PromptFilter, page: Page) =>
  Effect.flatMap(PromptRepo, (repo) => repo.listPage(workspace, filter, page))

const titles = (workspace: WorkspaceId, filter: PromptFilter) =>
  Effect.map(list(workspace, filter), ({ items }) => items.map(({ title }) => title).sort())

/**
 * Returns filters with all combinations of a few folders, tags and types. Each of the three may also be absent from a
 * filter. One folder and one tag do not exist in the archive.
 */
const makeFilters = (archive: Archive): ReadonlyArray<PromptFilter> => {
  const folders = withUndefined([...archive.folders.slice(0, 2).map(({ id }) => id), newId<FolderId>()])
  const tags = withUndefined([...archive.tags.slice(0, 2).map(({ name }) => name), "no such tag"])
  const types = withUndefined(archive.prompts.slice(0, 1).map(({ prompt_type }) => prompt_type))
  return folders.flatMap((folder_id) =>
    tags.flatMap((tag) => types.map((type) => ({ folder_id, tag, type })))
  )
}

/** Adds the tests of lists, and of the isolation of workspaces. */
export const addListTests = <R>(suite: ContractTests<PromptRepo | R>, load: LoadWorkspace<R>): void => {
  suite.addProperty(
    "PromptRepo.list and listPage return what the in-memory adapter returns, for any workspace and filter",
    archives,
    Effect.fnUntraced(function* (archive) {
      yield* load(archive)
      const workspace = archive.workspace.id
      for (const filter of makeFilters(archive)) {
        const whole = model.listPrompts(archive, filter)
        assert.deepStrictEqual(yield* list(workspace, filter), { items: whole, total: whole.length })
        for (const page of [wholeList, { page: 2, per_page: 1 }, { page: 2 ** 40, per_page: 100 }]) {
          const { items } = yield* list(workspace, filter, page)
          assert.deepStrictEqual(yield* listPage(workspace, filter, page), items)
        }
      }
      yield* assertPages((page) => list(workspace, {}, page), model.listPrompts(archive, {}))
    })
  )

  suite.add("PromptRepo never returns anything of another workspace, even one with the same content", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const [own, other] = [sample().archive, sample().archive]
      yield* load(own)
      yield* load(other)
      const workspace = own.workspace.id

      assert.deepStrictEqual((yield* list(workspace)).items, model.listPrompts(own, {}))
      for (const { name } of other.tags) {
        assert.deepStrictEqual(
          (yield* list(workspace, { tag: name })).items,
          model.listPrompts(own, { tag: name })
        )
      }
      for (const { id } of other.folders) {
        assert.deepStrictEqual(yield* list(workspace, { folder_id: id }), { items: [], total: 0 })
      }
      for (const { id, versions } of other.prompts) {
        assert.deepStrictEqual(yield* Effect.flip(repo.get(workspace, id)), PromptNotFound)
        assert.deepStrictEqual(yield* Effect.flip(repo.getSource(workspace, id)), PromptNotFound)
        assert.deepStrictEqual(
          yield* Effect.flip(repo.listVersions(workspace, id, undefined, wholeList)),
          PromptNotFound
        )
        for (const { version_number } of versions) {
          assert.deepStrictEqual(
            yield* Effect.flip(repo.getVersion(workspace, id, version_number, undefined)),
            VersionNotFound
          )
        }
      }
    })
  )

  suite.add("PromptRepo finds nothing in an unknown workspace", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const { archive } = sample()
      yield* load(archive)
      const unknownWorkspace = newId<WorkspaceId>()
      const { id, versions } = archive.prompts[0]!
      assert.deepStrictEqual(yield* list(unknownWorkspace), { items: [], total: 0 })
      assert.deepStrictEqual(yield* list(unknownWorkspace, { tag: "production" }), { items: [], total: 0 })
      assert.deepStrictEqual(yield* Effect.flip(repo.get(unknownWorkspace, id)), PromptNotFound)
      assert.deepStrictEqual(yield* Effect.flip(repo.getSource(unknownWorkspace, id)), PromptNotFound)
      assert.deepStrictEqual(
        yield* Effect.flip(repo.listVersions(unknownWorkspace, id, undefined, wholeList)),
        PromptNotFound
      )
      assert.deepStrictEqual(
        yield* Effect.flip(repo.getVersion(unknownWorkspace, id, versions[0]!.version_number, undefined)),
        VersionNotFound
      )
    })
  )

  suite.add("PromptRepo.list orders by updated_at, then by id, both descending", () =>
    Effect.gen(function* () {
      const [early, late] = [instant("2026-01-01T00:00:00.000Z"), instant("2026-01-01T00:00:00.001Z")]
      const prompts = Array.from({ length: 12 }, (_, index) =>
        prompt({
          updated_at: index % 3 === 0 ? early : late,
          created_at: instant(`2026-02-${10 + index}T00:00:00.000Z`),
          sort_order: index,
          title: String(index)
        })
      )
      const stored = archive({ prompts })
      yield* load(stored)
      const toDescendingIds = (from: typeof prompts) =>
        from
          .map(({ id }) => id)
          .sort()
          .reverse()
      const { items } = yield* list(stored.workspace.id)
      assert.deepStrictEqual(
        items.map(({ id }) => id),
        [
          ...toDescendingIds(prompts.filter(({ updated_at }) => updated_at === late)),
          ...toDescendingIds(prompts.filter(({ updated_at }) => updated_at === early))
        ]
      )
    })
  )

  suite.add("PromptRepo.list and listVersions return no items but the total for a page past the end", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const one = prompt({ versions: [version(1), version(2)] })
      const stored = archive({ prompts: [one, prompt(), prompt({ is_archived: true })] })
      yield* load(stored)
      const workspace = stored.workspace.id
      for (const page of [2, 21474836, 21474837, 4294967297, 92233720368547, Number.MAX_SAFE_INTEGER]) {
        const far = { page, per_page: 100 }
        assert.deepStrictEqual(yield* list(workspace, {}, far), { items: [], total: 2 })
        assert.deepStrictEqual(yield* list(workspace, { tag: "none" }, far), { items: [], total: 0 })
        assert.deepStrictEqual(yield* repo.listVersions(workspace, one.id, undefined, far), {
          items: [],
          total: 2
        })
      }
    })
  )

  suite.add("PromptRepo.list leaves out archived prompts, but reads by id return them", () =>
    Effect.gen(function* () {
      const repo = yield* PromptRepo
      const [drawer, label] = [folder(), tag("label")]
      const snippet = fragment("Snippet")
      const shelved = prompt({
        is_archived: true,
        folder_id: drawer.id,
        tags: [label.id],
        fragments: [fragmentBinding(snippet, 1)],
        versions: [version(1)]
      })
      const stored = archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [shelved] })
      yield* load(stored)
      const workspace = stored.workspace.id
      for (const filter of [
        {},
        { folder_id: drawer.id },
        { tag: "label" },
        { type: shelved.prompt_type },
        { folder_id: drawer.id, tag: "label", type: shelved.prompt_type }
      ]) {
        assert.deepStrictEqual(yield* list(workspace, filter), { items: [], total: 0 })
      }
      assert.deepStrictEqual(yield* repo.get(workspace, shelved.id), model.getPrompt(stored, shelved))
      assert.deepStrictEqual(
        withoutBytes(yield* repo.getSource(workspace, shelved.id)),
        model.getSource(stored, shelved)
      )
      assert.deepStrictEqual(yield* repo.listVersions(workspace, shelved.id, undefined, wholeList), {
        items: model.listVersions(shelved).map(model.toVersionSummary),
        total: 1
      })
      assert.deepStrictEqual(
        yield* repo.getVersion(workspace, shelved.id, versionNumber(1), undefined),
        model.listVersions(shelved)[0]!
      )
    })
  )

  suite.add("PromptRepo.list accepts any text as a tag, and matches only the exact name", () =>
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

  suite.addProperty(
    "PromptRepo.list finds a prompt by the exact name of its tag, whatever the name, and by no similar name",
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
}
