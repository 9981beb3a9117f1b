import { assert, layer as suite } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Archive } from "../../src/application/formats/Archive.ts"
import type { KeyStore } from "../../src/application/ports/KeyStore.ts"
import { type PromptFilter, PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { FolderId } from "../../src/domain/FolderId.ts"
import type { Page } from "../../src/domain/Page.ts"
import { type PromptId, PromptNotFound, PromptType } from "../../src/domain/Prompt.ts"
import type { Timestamp } from "../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../src/domain/Version.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import {
  archive,
  archives,
  awkwardTexts,
  folder,
  fragment,
  instant,
  newId,
  prompt,
  sample,
  storable,
  tag,
  fragmentBinding,
  version,
  versionNumber,
  toPartStream
} from "../support/archives.ts"
import * as model from "../support/model.ts"

const wholeList: Page = { page: 1, per_page: 100 }

const perPages = [1, 2, 3, 7, 100]

const importArchive = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importWorkspace(toPartStream(archive)))

const list = (workspace: WorkspaceId, filter: PromptFilter = {}, page: Page = wholeList) =>
  Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, page))

const listPage = (workspace: WorkspaceId, filter: PromptFilter, page: Page) =>
  Effect.flatMap(PromptRepo, (repo) => repo.listPage(workspace, filter, page))

const titles = (workspace: WorkspaceId, filter: PromptFilter) =>
  Effect.map(list(workspace, filter), ({ items }) => items.map(({ title }) => title).sort())

/** Asserts that each page of a list, to one page past its end, is a slice of the whole list. */
const assertPages = Effect.fnUntraced(function* <A, E, R>(
  read: (page: Page) => Effect.Effect<{ readonly items: ReadonlyArray<A>; readonly total: number }, E, R>,
  whole: ReadonlyArray<A>
) {
  assert.deepStrictEqual(yield* read(wholeList), { items: whole, total: whole.length })
  for (const per_page of perPages) {
    const pages = Math.ceil(whole.length / per_page) + 1
    for (let page = 1; page <= pages; page++) {
      assert.deepStrictEqual(yield* read({ page, per_page }), {
        items: whole.slice((page - 1) * per_page, page * per_page),
        total: whole.length
      })
    }
  }
})

const withUndefined = <A>(values: ReadonlyArray<A>): ReadonlyArray<A | undefined> => [undefined, ...values]

/** Returns all combinations of some folders, tags and types of an archive, including none. */
const makeFilters = (archive: Archive): ReadonlyArray<PromptFilter> => {
  const folders = withUndefined([...archive.folders.slice(0, 2).map(({ id }) => id), newId<FolderId>()])
  const tags = withUndefined([...archive.tags.slice(0, 2).map(({ name }) => name), "no such tag"])
  const types = withUndefined(archive.prompts.slice(0, 1).map(({ prompt_type }) => prompt_type))
  return folders.flatMap((folder_id) =>
    tags.flatMap((tag) => types.map((type) => ({ folder_id, tag, type })))
  )
}

/** Returns the times of all versions of an archive, and `undefined`, as history cutoffs. */
const makeCutoffs = (archive: Archive): ReadonlyArray<Timestamp | undefined> =>
  withUndefined([
    ...new Set(archive.prompts.flatMap(({ versions }) => versions.map(({ created_at }) => created_at)))
  ])

/** Tests what every adapter of `PromptRepo` must do. */
export const testPromptRepo = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`PromptRepo: ${name}`, (it) => {
    it.effect.prop(
      "list and listPage return the prompts and totals that the model returns, for any workspace and filter",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        yield* importArchive(archive)
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
      }),
      { arbitrary: { runs: 25, maxShrinks: 100 } }
    )

    it.effect.prop(
      "get, getSource and getVersion return what the model returns, for any workspace",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        const repo = yield* PromptRepo
        yield* importArchive(archive)
        const workspace = archive.workspace.id
        for (const prompt of archive.prompts) {
          assert.deepStrictEqual(yield* repo.get(workspace, prompt.id), model.getPrompt(archive, prompt))
          assert.deepStrictEqual(
            yield* repo.getSource(workspace, prompt.id),
            model.getSource(archive, prompt)
          )
          for (const version of model.listVersions(prompt)) {
            assert.deepStrictEqual(
              yield* repo.getVersion(workspace, prompt.id, version.version_number, undefined),
              version
            )
          }
        }
      }),
      { arbitrary: { runs: 25, maxShrinks: 100 } }
    )

    it.effect.prop(
      "listVersions and getVersion return what the model returns, for any history and cutoff",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        const repo = yield* PromptRepo
        yield* importArchive(archive)
        const workspace = archive.workspace.id
        for (const prompt of archive.prompts.slice(0, 3)) {
          for (const oldest of makeCutoffs(archive)) {
            const visible = model.listVersions(prompt, oldest)
            assert.deepStrictEqual(yield* repo.listVersions(workspace, prompt.id, oldest, wholeList), {
              items: visible.map(model.toVersionSummary),
              total: visible.length
            })
            for (const version of prompt.versions) {
              const read = repo.getVersion(workspace, prompt.id, version.version_number, oldest)
              const expected = visible.find(({ id }) => id === version.id)
              if (expected === undefined) assert.deepStrictEqual(yield* Effect.flip(read), VersionNotFound)
              else assert.deepStrictEqual(yield* read, expected)
            }
          }
        }
      }),
      { arbitrary: { runs: 15, maxShrinks: 100 } }
    )

    it.effect("every read of the sample workspace returns what the model returns", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const { archive } = sample()
        yield* importArchive(archive)
        const workspace = archive.workspace.id
        for (const type of withUndefined(PromptType.literals)) {
          for (const folder_id of withUndefined(archive.folders.map(({ id }) => id))) {
            for (const tag of withUndefined(archive.tags.map(({ name }) => name))) {
              const filter = { type, folder_id, tag }
              const whole = model.listPrompts(archive, filter)
              assert.deepStrictEqual(yield* list(workspace, filter), { items: whole, total: whole.length })
            }
          }
        }
        for (const prompt of archive.prompts) {
          assert.deepStrictEqual(yield* repo.get(workspace, prompt.id), model.getPrompt(archive, prompt))
          assert.deepStrictEqual(
            yield* repo.getSource(workspace, prompt.id),
            model.getSource(archive, prompt)
          )
          yield* assertPages(
            (page) => repo.listVersions(workspace, prompt.id, undefined, page),
            model.listVersions(prompt).map(model.toVersionSummary)
          )
        }
      })
    )

    it.effect("reads in a workspace never return anything of another workspace with the same content", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [own, other] = [sample().archive, sample().archive]
        yield* importArchive(own)
        yield* importArchive(other)
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

    it.effect("reads in an unknown workspace find nothing", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const { archive } = sample()
        yield* importArchive(archive)
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

    it.effect("an unknown prompt and an unknown version number are not found", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [one, two] = [
          prompt({ versions: [version(1), version(3)] }),
          prompt({ versions: [version(2), version(2147483647)] })
        ]
        const stored = archive({ prompts: [one, two] })
        yield* importArchive(stored)
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

    it.effect("list orders by updated_at, then by id, both descending", () =>
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
        yield* importArchive(stored)
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

    it.effect("a page far past the end is empty and still has the total", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const one = prompt({ versions: [version(1), version(2)] })
        const stored = archive({ prompts: [one, prompt(), prompt({ is_archived: true })] })
        yield* importArchive(stored)
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

    it.effect("archived prompts are in no list but are found by id", () =>
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
        yield* importArchive(stored)
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
        assert.deepStrictEqual(yield* repo.getSource(workspace, shelved.id), model.getSource(stored, shelved))
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

    it.effect("any text is a valid tag, and only exact names match", () =>
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
        yield* importArchive(stored)
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

    it.effect("list returns a prompt with several tags once", () =>
      Effect.gen(function* () {
        const tags = ["a", "b", "c"].map((name) => tag(name))
        const stored = archive({ tags, prompts: [prompt({ tags: tags.map(({ id }) => id) })] })
        yield* importArchive(stored)
        for (const filter of [{}, { tag: "a" }, { tag: "c" }]) {
          assert.deepStrictEqual(yield* list(stored.workspace.id, filter), {
            items: model.listPrompts(stored, {}),
            total: 1
          })
        }
      })
    )

    it.effect("get returns a prompt's tags ordered by the code points of their names", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const names = [
          " ",
          "!",
          "10",
          "9",
          "B",
          "Z",
          "a",
          "a b",
          "ab",
          "b",
          "z",
          "ß",
          "ä",
          "\uffee",
          "😀"
        ].map((name) => tag(name))
        const one = prompt({ tags: names.toReversed().map(({ id }) => id) })
        const stored = archive({ tags: [...names.slice(5), ...names.slice(0, 5)], prompts: [one] })
        yield* importArchive(stored)
        assert.deepStrictEqual((yield* repo.get(stored.workspace.id, one.id)).tags, names)
      })
    )

    it.effect("a prompt outside any folder has folder_id null and is in no folder's list", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const drawer = folder()
        const [inside, outside] = [prompt({ folder_id: drawer.id, title: "inside" }), prompt()]
        const stored = archive({ folders: [drawer], prompts: [inside, outside] })
        yield* importArchive(stored)
        assert.strictEqual((yield* repo.get(stored.workspace.id, outside.id)).folder_id, null)
        assert.strictEqual((yield* repo.get(stored.workspace.id, inside.id)).folder_id, drawer.id)
        assert.deepStrictEqual(yield* titles(stored.workspace.id, { folder_id: drawer.id }), ["inside"])
      })
    )

    it.effect(
      "a version created exactly at the cutoff is visible, and one created a millisecond earlier is not",
      () =>
        Effect.gen(function* () {
          const repo = yield* PromptRepo
          const oldest = instant("2026-03-01T00:00:00.000Z")
          const before = version(3, { created_at: instant("2026-02-28T23:59:59.999Z") })
          const at = version(1, { created_at: oldest })
          const after = version(2, { created_at: instant("2026-03-01T00:00:00.001Z") })
          const one = prompt({ current_version: 3, versions: [before, at, after] })
          const stored = archive({ prompts: [one] })
          yield* importArchive(stored)
          const workspace = stored.workspace.id
          yield* assertPages(
            (page) => repo.listVersions(workspace, one.id, oldest, page),
            model.listVersions({ ...one, versions: [after, at] }).map(model.toVersionSummary)
          )
          assert.strictEqual((yield* repo.getVersion(workspace, one.id, versionNumber(1), oldest)).id, at.id)
          assert.strictEqual(
            (yield* repo.getVersion(workspace, one.id, versionNumber(2), oldest)).id,
            after.id
          )
          assert.deepStrictEqual(
            yield* Effect.flip(repo.getVersion(workspace, one.id, versionNumber(3), oldest)),
            VersionNotFound
          )
          assert.strictEqual(
            (yield* repo.getVersion(workspace, one.id, versionNumber(3), undefined)).id,
            before.id
          )
        })
    )

    it.effect("listVersions returns an empty list if no version is visible", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [bare, old] = [prompt(), prompt({ versions: [version(1)] })]
        const stored = archive({ prompts: [bare, old] })
        yield* importArchive(stored)
        const now = instant("2030-01-01T00:00:00.000Z")
        for (const read of [
          repo.listVersions(stored.workspace.id, bare.id, undefined, wholeList),
          repo.listVersions(stored.workspace.id, old.id, now, wholeList)
        ]) {
          assert.deepStrictEqual(yield* read, { items: [], total: 0 })
        }
      })
    )

    it.effect(
      "getSource orders fragments by position, then by the binding's id, and repeats a fragment that is bound twice",
      () =>
        Effect.gen(function* () {
          const repo = yield* PromptRepo
          const [a, b] = [fragment("a"), fragment("b")]
          const tied = Array.from({ length: 8 }, (_, index) =>
            fragmentBinding(index % 2 === 0 ? a : b, 5, { variable_overrides: { index } })
          )
          const [first, last] = [fragmentBinding(b, -2147483648), fragmentBinding(a, 2147483647)]
          const one = prompt({ fragments: [last, ...tied, first] })
          const stored = archive({ fragments: [a, b], prompts: [one] })
          yield* importArchive(stored)
          const contents = new Map([a, b].map(({ id, content }) => [id, content]))
          const expected = [
            first,
            ...tied.toSorted((left, right) => (left.id < right.id ? -1 : 1)),
            last
          ].map(({ fragment_id, variable_overrides }) => ({
            content: contents.get(fragment_id)!,
            variable_overrides
          }))
          assert.deepStrictEqual((yield* repo.getSource(stored.workspace.id, one.id)).fragments, expected)
        })
    )

    it.effect("every text is returned byte for byte", () =>
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
          yield* importArchive(stored)
          const workspace = stored.workspace.id
          assert.isTrue((yield* repo.get(workspace, one.id)).current_content === text)
          assert.deepStrictEqual(yield* repo.get(workspace, one.id), model.getPrompt(stored, one))
          assert.deepStrictEqual(yield* repo.getSource(workspace, one.id), model.getSource(stored, one))
          assert.deepStrictEqual((yield* list(workspace)).items, model.listPrompts(stored, {}))
          assert.deepStrictEqual(
            yield* repo.getVersion(workspace, one.id, versionNumber(1), undefined),
            model.listVersions(one)[0]!
          )
        }
      })
    )

    it.effect("metadata and overrides are returned unchanged, with any names and values", () =>
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
        yield* importArchive(stored)
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

    it.effect.prop(
      "list finds a prompt by any tag name and not by similar names",
      { name: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(256)) },
      Effect.fnUntraced(function* ({ name }) {
        const label = tag(storable(name))
        const stored = archive({ tags: [label], prompts: [prompt({ tags: [label.id] })] })
        yield* importArchive(stored)
        const workspace = stored.workspace.id
        assert.strictEqual((yield* list(workspace, { tag: label.name })).total, 1)
        for (const similar of [name, `${name}\0`, `${name}\ud800`, `${name} `, name.slice(1)]) {
          assert.strictEqual((yield* list(workspace, { tag: similar })).total, similar === label.name ? 1 : 0)
        }
      }),
      { arbitrary: { runs: 25 } }
    )
  })
