import { assert, layer as suite } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Archive } from "../../src/application/Archive.ts"
import type { KeyStore } from "../../src/application/KeyStore.ts"
import { type PromptFilter, PromptRepo } from "../../src/application/PromptRepo.ts"
import { JsonText } from "../../src/domain/Bindings.ts"
import { WorkspaceStore } from "../../src/application/WorkspaceStore.ts"
import type { Page } from "../../src/domain/Page.ts"
import {
  type FolderId,
  type PromptId,
  PromptNotFound,
  PromptType,
  type WorkspaceId
} from "../../src/domain/Prompt.ts"
import { maxSourceBytes, ResolvedTooLarge } from "../../src/domain/Resolution.ts"
import type { Timestamp } from "../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../src/domain/Version.ts"
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
  use,
  version,
  versionNumber
} from "../support/archives.ts"
import { listOf, promptOf, sourceOf, versionSummaryOf, versionsOf } from "../support/model.ts"

const everything: Page = { page: 1, per_page: 100 }

const perPages = [1, 2, 3, 7, 100]

const load = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importArchive(archive))

const list = (
  workspace: WorkspaceId,
  filter: PromptFilter = {},
  page: Page = everything,
  ...total: readonly [] | readonly [number]
) => Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, page, ...total))

const titles = (workspace: WorkspaceId, filter: PromptFilter) =>
  Effect.map(list(workspace, filter), ({ items }) => items.map(({ title }) => title).sort())

/** Reads a list page by page, one page beyond its end, and says that nothing but the cut depends on the page. */
const readSlices = Effect.fnUntraced(function* <A, E, R>(
  read: (page: Page) => Effect.Effect<{ readonly items: ReadonlyArray<A>; readonly total: number }, E, R>,
  whole: ReadonlyArray<A>
) {
  assert.deepStrictEqual(yield* read(everything), { items: whole, total: whole.length })
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

const absent = <A>(values: ReadonlyArray<A>): ReadonlyArray<A | undefined> => [undefined, ...values]

/** No filter, each one alone, and every two and three of them together. */
const filtersOf = (archive: Archive): ReadonlyArray<PromptFilter> => {
  const folders = absent([...archive.folders.slice(0, 2).map(({ id }) => id), newId<FolderId>()])
  const tags = absent([...archive.tags.slice(0, 2).map(({ name }) => name), "no such tag"])
  const types = absent(archive.prompts.slice(0, 1).map(({ prompt_type }) => prompt_type))
  return folders.flatMap((folder_id) =>
    tags.flatMap((tag) => types.map((type) => ({ folder_id, tag, type })))
  )
}

const cuts = (archive: Archive): ReadonlyArray<Timestamp | undefined> =>
  absent([
    ...new Set(archive.prompts.flatMap(({ versions }) => versions.map(({ created_at }) => created_at)))
  ])

/** What every adapter of `PromptRepo` must do. */
export const contract = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`PromptRepo: ${name}`, (it) => {
    it.effect.prop(
      "lists, counts and filters any workspace as its archive says",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        yield* load(archive)
        const workspace = archive.workspace.id
        for (const filter of filtersOf(archive)) {
          const whole = listOf(archive, filter)
          assert.deepStrictEqual(yield* list(workspace, filter), { items: whole, total: whole.length })
          // Whoever knows the total, or thinks so, gets it back: it is not counted.
          for (const page of [everything, { page: 2, per_page: 1 }, { page: 2 ** 40, per_page: 100 }]) {
            const { items } = yield* list(workspace, filter, page)
            assert.deepStrictEqual(yield* list(workspace, filter, page, 12_345), { items, total: 12_345 })
          }
        }
        yield* readSlices((page) => list(workspace, {}, page), listOf(archive, {}))
      }),
      { arbitrary: { runs: 25, maxShrinks: 100 } }
    )

    it.effect.prop(
      "gives every prompt, source and version of any workspace as its archive says",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        const repo = yield* PromptRepo
        yield* load(archive)
        const workspace = archive.workspace.id
        for (const prompt of archive.prompts) {
          assert.deepStrictEqual(yield* repo.get(workspace, prompt.id), promptOf(archive, prompt))
          assert.deepStrictEqual(yield* repo.getSource(workspace, prompt.id), sourceOf(archive, prompt))
          for (const version of versionsOf(prompt)) {
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
      "cuts any history at every instant as its archive says",
      { archive: archives },
      Effect.fnUntraced(function* ({ archive }) {
        const repo = yield* PromptRepo
        yield* load(archive)
        const workspace = archive.workspace.id
        for (const prompt of archive.prompts.slice(0, 3)) {
          for (const oldest of cuts(archive)) {
            const visible = versionsOf(prompt, oldest)
            assert.deepStrictEqual(yield* repo.listVersions(workspace, prompt.id, oldest, everything), {
              items: visible.map(versionSummaryOf),
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

    it.effect("reads the sample workspace whole", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const { archive } = sample()
        yield* load(archive)
        const workspace = archive.workspace.id
        for (const type of absent(PromptType.literals)) {
          for (const folder_id of absent(archive.folders.map(({ id }) => id))) {
            for (const tag of absent(archive.tags.map(({ name }) => name))) {
              const filter = { type, folder_id, tag }
              const whole = listOf(archive, filter)
              assert.deepStrictEqual(yield* list(workspace, filter), { items: whole, total: whole.length })
            }
          }
        }
        for (const prompt of archive.prompts) {
          assert.deepStrictEqual(yield* repo.get(workspace, prompt.id), promptOf(archive, prompt))
          assert.deepStrictEqual(yield* repo.getSource(workspace, prompt.id), sourceOf(archive, prompt))
          yield* readSlices(
            (page) => repo.listVersions(workspace, prompt.id, undefined, page),
            versionsOf(prompt).map(versionSummaryOf)
          )
        }
      })
    )

    it.effect("sees nothing of another workspace, however alike the two are", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [own, other] = [sample().archive, sample().archive]
        yield* load(own)
        yield* load(other)
        const workspace = own.workspace.id

        assert.deepStrictEqual((yield* list(workspace)).items, listOf(own, {}))
        for (const { name } of other.tags) {
          assert.deepStrictEqual((yield* list(workspace, { tag: name })).items, listOf(own, { tag: name }))
        }
        for (const { id } of other.folders) {
          assert.deepStrictEqual(yield* list(workspace, { folder_id: id }), { items: [], total: 0 })
        }
        for (const { id, versions } of other.prompts) {
          assert.deepStrictEqual(yield* Effect.flip(repo.get(workspace, id)), PromptNotFound)
          assert.deepStrictEqual(yield* Effect.flip(repo.getSource(workspace, id)), PromptNotFound)
          assert.deepStrictEqual(
            yield* Effect.flip(repo.listVersions(workspace, id, undefined, everything)),
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

    it.effect("finds nothing in a workspace that is not there", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const { archive } = sample()
        yield* load(archive)
        const nowhere = newId<WorkspaceId>()
        const { id, versions } = archive.prompts[0]!
        assert.deepStrictEqual(yield* list(nowhere), { items: [], total: 0 })
        assert.deepStrictEqual(yield* list(nowhere, { tag: "production" }), { items: [], total: 0 })
        assert.deepStrictEqual(yield* Effect.flip(repo.get(nowhere, id)), PromptNotFound)
        assert.deepStrictEqual(yield* Effect.flip(repo.getSource(nowhere, id)), PromptNotFound)
        assert.deepStrictEqual(
          yield* Effect.flip(repo.listVersions(nowhere, id, undefined, everything)),
          PromptNotFound
        )
        assert.deepStrictEqual(
          yield* Effect.flip(repo.getVersion(nowhere, id, versions[0]!.version_number, undefined)),
          VersionNotFound
        )
      })
    )

    it.effect("does not find a prompt that is not there, nor a version by a number that is not there", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [one, two] = [
          prompt({ versions: [version(1), version(3)] }),
          prompt({ versions: [version(2), version(2147483647)] })
        ]
        const made = archive({ prompts: [one, two] })
        yield* load(made)
        const workspace = made.workspace.id
        const unknown = newId<PromptId>()
        assert.deepStrictEqual(yield* Effect.flip(repo.get(workspace, unknown)), PromptNotFound)
        assert.deepStrictEqual(yield* Effect.flip(repo.getSource(workspace, unknown)), PromptNotFound)
        assert.deepStrictEqual(
          yield* Effect.flip(repo.listVersions(workspace, unknown, undefined, everything)),
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
          versionsOf(two)[0]!
        )
      })
    )

    it.effect("orders by the time of the last update, and equal times by id, both descending", () =>
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
        const made = archive({ prompts })
        yield* load(made)
        const descending = (from: typeof prompts) =>
          from
            .map(({ id }) => id)
            .sort()
            .reverse()
        const { items } = yield* list(made.workspace.id)
        assert.deepStrictEqual(
          items.map(({ id }) => id),
          [
            ...descending(prompts.filter(({ updated_at }) => updated_at === late)),
            ...descending(prompts.filter(({ updated_at }) => updated_at === early))
          ]
        )
      })
    )

    it.effect("is empty past the end, however far, and still counts all", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const one = prompt({ versions: [version(1), version(2)] })
        const made = archive({ prompts: [one, prompt(), prompt({ is_archived: true })] })
        yield* load(made)
        const workspace = made.workspace.id
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

    it.effect("leaves archived prompts out of every list, and finds them by id", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [drawer, label] = [folder(), tag("label")]
        const snippet = fragment("Snippet")
        const shelved = prompt({
          is_archived: true,
          folder_id: drawer.id,
          tags: [label.id],
          fragments: [use(snippet, 1)],
          versions: [version(1)]
        })
        const made = archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [shelved] })
        yield* load(made)
        const workspace = made.workspace.id
        for (const filter of [
          {},
          { folder_id: drawer.id },
          { tag: "label" },
          { type: shelved.prompt_type },
          { folder_id: drawer.id, tag: "label", type: shelved.prompt_type }
        ]) {
          assert.deepStrictEqual(yield* list(workspace, filter), { items: [], total: 0 })
        }
        assert.deepStrictEqual(yield* repo.get(workspace, shelved.id), promptOf(made, shelved))
        assert.deepStrictEqual(yield* repo.getSource(workspace, shelved.id), sourceOf(made, shelved))
        assert.deepStrictEqual(yield* repo.listVersions(workspace, shelved.id, undefined, everything), {
          items: versionsOf(shelved).map(versionSummaryOf),
          total: 1
        })
        assert.deepStrictEqual(
          yield* repo.getVersion(workspace, shelved.id, versionNumber(1), undefined),
          versionsOf(shelved)[0]!
        )
      })
    )

    it.effect("takes any text as a tag, and matches exact names only", () =>
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
        const made = archive({
          tags,
          prompts: tags.map(({ id, name }) => prompt({ title: name, tags: [id] }))
        })
        yield* load(made)
        for (const name of names) {
          assert.deepStrictEqual(yield* titles(made.workspace.id, { tag: name }), [name])
        }
        const strangers = [
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
        for (const name of strangers) {
          assert.deepStrictEqual(yield* list(made.workspace.id, { tag: name }), { items: [], total: 0 })
        }
      })
    )

    it.effect("lists a prompt once for a tag, whatever other tags it has", () =>
      Effect.gen(function* () {
        const tags = ["a", "b", "c"].map((name) => tag(name))
        const made = archive({ tags, prompts: [prompt({ tags: tags.map(({ id }) => id) })] })
        yield* load(made)
        for (const filter of [{}, { tag: "a" }, { tag: "c" }]) {
          assert.deepStrictEqual(yield* list(made.workspace.id, filter), {
            items: listOf(made, {}),
            total: 1
          })
        }
      })
    )

    it.effect("gives a prompt's tags by name, in the order of code points", () =>
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
        const made = archive({ tags: [...names.slice(5), ...names.slice(0, 5)], prompts: [one] })
        yield* load(made)
        assert.deepStrictEqual((yield* repo.get(made.workspace.id, one.id)).tags, names)
      })
    )

    it.effect("gives a prompt outside any folder a null folder, and no folder's list holds it", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const drawer = folder()
        const [inside, outside] = [prompt({ folder_id: drawer.id, title: "inside" }), prompt()]
        const made = archive({ folders: [drawer], prompts: [inside, outside] })
        yield* load(made)
        assert.strictEqual((yield* repo.get(made.workspace.id, outside.id)).folder_id, null)
        assert.strictEqual((yield* repo.get(made.workspace.id, inside.id)).folder_id, drawer.id)
        assert.deepStrictEqual(yield* titles(made.workspace.id, { folder_id: drawer.id }), ["inside"])
      })
    )

    it.effect("shows a version made exactly at the cut, and none made a millisecond earlier", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const oldest = instant("2026-03-01T00:00:00.000Z")
        const before = version(3, { created_at: instant("2026-02-28T23:59:59.999Z") })
        const at = version(1, { created_at: oldest })
        const after = version(2, { created_at: instant("2026-03-01T00:00:00.001Z") })
        const one = prompt({ current_version: 3, versions: [before, at, after] })
        const made = archive({ prompts: [one] })
        yield* load(made)
        const workspace = made.workspace.id
        yield* readSlices(
          (page) => repo.listVersions(workspace, one.id, oldest, page),
          versionsOf({ ...one, versions: [after, at] }).map(versionSummaryOf)
        )
        assert.strictEqual((yield* repo.getVersion(workspace, one.id, versionNumber(1), oldest)).id, at.id)
        assert.strictEqual((yield* repo.getVersion(workspace, one.id, versionNumber(2), oldest)).id, after.id)
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

    it.effect("gives an empty list, not a missing prompt, where no version is visible", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const [bare, old] = [prompt(), prompt({ versions: [version(1)] })]
        const made = archive({ prompts: [bare, old] })
        yield* load(made)
        const now = instant("2030-01-01T00:00:00.000Z")
        for (const read of [
          repo.listVersions(made.workspace.id, bare.id, undefined, everything),
          repo.listVersions(made.workspace.id, old.id, now, everything)
        ]) {
          assert.deepStrictEqual(yield* read, { items: [], total: 0 })
        }
      })
    )

    it.effect(
      "orders fragments by position, equal positions by the row's id, and repeats what is used twice",
      () =>
        Effect.gen(function* () {
          const repo = yield* PromptRepo
          const [a, b] = [fragment("a"), fragment("b")]
          const tied = Array.from({ length: 8 }, (_, index) =>
            use(index % 2 === 0 ? a : b, 5, { variable_overrides: { index } })
          )
          const [first, last] = [use(b, -2147483648), use(a, 2147483647)]
          const one = prompt({ fragments: [last, ...tied, first] })
          const made = archive({ fragments: [a, b], prompts: [one] })
          yield* load(made)
          const contentOf = new Map([a, b].map(({ id, content }) => [id, content]))
          const expected = [
            first,
            ...tied.toSorted((left, right) => (left.id < right.id ? -1 : 1)),
            last
          ].map(({ fragment_id, variable_overrides }) => ({
            content: contentOf.get(fragment_id)!,
            variable_overrides
          }))
          assert.deepStrictEqual((yield* repo.getSource(made.workspace.id, one.id)).fragments, expected)
        })
    )

    it.effect("keeps every text byte for byte", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const texts = [...awkwardTexts, "long ä😀\n".repeat(200_000)]
        for (const text of texts) {
          const snippet = fragment(text)
          const one = prompt({
            title: text,
            description: text,
            current_content: text,
            target_model: text,
            intent: text,
            fragments: [use(snippet, 1, { variable_overrides: { text } })],
            versions: [version(1, { content: text, change_summary: text, change_source: text })]
          })
          const made = archive({ fragments: [snippet], prompts: [one] })
          yield* load(made)
          const workspace = made.workspace.id
          assert.isTrue((yield* repo.get(workspace, one.id)).current_content === text)
          assert.deepStrictEqual(yield* repo.get(workspace, one.id), promptOf(made, one))
          const source = yield* repo.getSource(workspace, one.id)
          // Large overrides may come as text.
          const fragments = source.fragments.map(({ content, variable_overrides: overrides }) => ({
            content,
            variable_overrides: overrides instanceof JsonText ? JSON.parse(overrides.text) : overrides
          }))
          assert.deepStrictEqual({ ...source, fragments }, sourceOf(made, one))
          assert.deepStrictEqual((yield* list(workspace)).items, listOf(made, {}))
          assert.deepStrictEqual(
            yield* repo.getVersion(workspace, one.id, versionNumber(1), undefined),
            versionsOf(one)[0]!
          )
        }
      })
    )

    it.effect("keeps metadata and overrides as they are, whatever their names and values", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const freeForm: Record<string, Schema.Json> = JSON.parse(
          `{"": 1, " ": "", "a.b": {"c": [[], {}, null, true, "\\ud83d\\ude00"]}, "__proto__": {"x": 1},
            "constructor": "y", "camelCase": 1, "snake_case": 2, "0": 0, "big": 9007199254740991,
            "small": 5e-324, "huge": 1.7976931348623157e308, "fraction": 0.1, "negative": -1.5}`
        )
        const snippet = fragment("{{x}}")
        const one = prompt({
          fragments: [use(snippet, 1, { variable_overrides: freeForm }), use(snippet, 2)],
          versions: [version(1, { metadata: freeForm }), version(2)]
        })
        const made = archive({ fragments: [snippet], prompts: [one] })
        yield* load(made)
        const source = yield* repo.getSource(made.workspace.id, one.id)
        assert.deepStrictEqual(source.fragments, [
          { content: "{{x}}", variable_overrides: freeForm },
          { content: "{{x}}", variable_overrides: {} }
        ])
        const read = (number: number) =>
          repo.getVersion(made.workspace.id, one.id, versionNumber(number), undefined)
        assert.deepStrictEqual((yield* read(1)).metadata, freeForm)
        assert.deepStrictEqual((yield* read(2)).metadata, {})
      })
    )

    it.effect("refuses fragments that are together larger than the bound, counted in bytes and by use", () =>
      Effect.gen(function* () {
        const repo = yield* PromptRepo
        const half = fragment("é".repeat(maxSourceBytes / 4))
        const byte = fragment("x")
        // A binding may shorten a fragment, so only its bound says that a fragment is too large.
        const bound = { variable_overrides: { name: "value" } }
        const full = prompt({
          current_content: "more",
          fragments: [use(half, 1, bound), use(half, 2, bound)]
        })
        const over = prompt({ fragments: [use(half, 1, bound), use(byte, 2), use(half, 3, bound)] })
        const made = archive({ fragments: [half, byte], prompts: [full, over] })
        yield* load(made)
        const source = yield* repo.getSource(made.workspace.id, full.id)
        assert.isTrue(
          source.fragments.length === 2 && source.fragments.every(({ content }) => content === half.content)
        )
        assert.deepStrictEqual(
          yield* Effect.flip(repo.getSource(made.workspace.id, over.id)),
          ResolvedTooLarge(over.id)
        )
      })
    )

    it.effect.prop(
      "finds a prompt by any tag, and nothing by what comes close to it",
      { name: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(256)) },
      Effect.fnUntraced(function* ({ name }) {
        const label = tag(storable(name))
        const made = archive({ tags: [label], prompts: [prompt({ tags: [label.id] })] })
        yield* load(made)
        const workspace = made.workspace.id
        assert.strictEqual((yield* list(workspace, { tag: label.name })).total, 1)
        for (const close of [name, `${name}\0`, `${name}\ud800`, `${name} `, name.slice(1)]) {
          assert.strictEqual((yield* list(workspace, { tag: close })).total, close === label.name ? 1 : 0)
        }
      }),
      { arbitrary: { runs: 25 } }
    )
  })
