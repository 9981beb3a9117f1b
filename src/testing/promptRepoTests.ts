import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import { type PromptId, PromptNotFound } from "../domain/Prompt.ts"
import { VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import {
  archive,
  awkwardTexts,
  fragment,
  fragmentBinding,
  instant,
  newId,
  prompt,
  sample,
  tag,
  version,
  versionNumber
} from "./archives.ts"
import { type ContractTest, type LoadWorkspace, makePropertyTest } from "./contract.ts"
import { archives } from "./generatedArchives.ts"
import { assertReads, listReferences, parseReference, wholeList } from "./promptReads.ts"

const list = (workspace: WorkspaceId, filter: PromptFilter = {}) =>
  Effect.flatMap(PromptRepo, (repo) => repo.list(workspace, filter, wholeList))

const nothing = { items: [], total: 0 }

/** Returns an id that starts with 8 digits and ends with a number. */
const makeId = (start: string, end: number): PromptId =>
  `${start}-0000-4000-8000-${String(end).padStart(12, "0")}` as PromptId

/** Asserts that each read of a prompt by `name` returns the prompt `id`, or fails if `id` is undefined. */
const assertName = Effect.fnUntraced(function* (
  workspace: WorkspaceId,
  name: string,
  id: PromptId | undefined
) {
  const repo = yield* PromptRepo
  const reference = parseReference(name)
  const version = repo.getVersion(workspace, reference, versionNumber(1), undefined)
  const reads: ReadonlyArray<Effect.Effect<PromptId | undefined, unknown>> = [
    Effect.map(repo.get(workspace, reference), (found) => found.id),
    Effect.map(repo.getSource(workspace, reference), (found) => found.id),
    Effect.as(repo.listVersions(workspace, reference, undefined, wholeList), id),
    Effect.map(version, ({ prompt_id }) => prompt_id)
  ]
  for (const [index, read] of reads.entries()) {
    const result = yield* Effect.match(read, { onFailure: (error) => error, onSuccess: (found) => found })
    const missing = index === 3 ? VersionNotFound : PromptNotFound
    assert.deepStrictEqual(result, id ?? missing, `${name}, read ${index}`)
  }
})

/** Makes the test of the names of prompts. */
export const makeNameTest = <R>(load: LoadWorkspace<R>): ContractTest<PromptRepo | R> => ({
  name: "a slug belongs to the oldest prompt that is not archived, and digits of the id reach the other prompts",
  run: Effect.gen(function* () {
    const make = (start: string, end: number, title: string, time: string, is_archived = false) =>
      prompt({
        id: makeId(start, end),
        title,
        created_at: instant(time),
        is_archived,
        versions: [version(1)]
      })
    const copy = make("aaaaaaaa", 2, "Support agent", "2026-01-02")
    const original = make("aaaaaaaa", 3, "Support agent", "2026-01-01")
    const twin = make("bbbbbbbb", 1, "support  AGENT!", "2026-01-02")
    const archived = make("aaaaaaaa", 1, "Support agent", "2025-01-01", true)
    const dated = make("cccccccc", 1, "Release 20260101", "2026-01-01")
    const likeId = make("dddddddd", 1, makeId("dddddddd", 2), "2026-01-01")
    const japanese = make("eeeeeeee", 1, "プロンプト", "2026-01-01")
    const stored = archive({ prompts: [copy, original, twin, archived, dated, likeId, japanese] })
    const other = archive({ prompts: [make("ffffffff", 1, "Foreign", "2026-01-01")] })
    yield* load(stored)
    yield* load(other)
    const workspace = stored.workspace.id
    const toDigits = ({ id }: { readonly id: PromptId }) => id.replaceAll("-", "")
    const expected: ReadonlyArray<readonly [name: string, id: PromptId | undefined]> = [
      ["support-agent", original.id],
      ["support-agent-aaaaaaaa", copy.id],
      [`support-agent-${toDigits(copy)}`, copy.id],
      [`support-agent-${toDigits(original)}`, original.id],
      [`support-agent-${toDigits(archived)}`, undefined],
      ["support-agent-bbbbbbbb", twin.id],
      ["support-agent-cccccccc", undefined],
      ["support", undefined],
      ["-support-agent", undefined],
      ["release-20260101", undefined],
      ["release-20260101-cccccccc", dated.id],
      [makeId("dddddddd", 2), undefined],
      [`${makeId("dddddddd", 2)}-dddddddd`, likeId.id],
      ["prompt", japanese.id],
      ["prompt-eeeeeeee", japanese.id],
      ["foreign", undefined]
    ]
    for (const [name, id] of expected) yield* assertName(workspace, name, id)
    yield* assertName(other.workspace.id, "foreign", other.prompts[0]?.id)
    yield* assertName(newId<WorkspaceId>(), "support-agent", undefined)
    yield* assertName(workspace, archived.id.toUpperCase(), archived.id)
    yield* assertReads(stored)

    // The original is renamed, so the slug passes to the next prompt.
    const renamed = { ...original, title: "Agent for support" }
    yield* load({ ...stored, prompts: [copy, renamed, twin, archived] })
    yield* assertName(workspace, "support-agent", copy.id)
    yield* assertName(workspace, "agent-for-support", original.id)
    yield* assertName(workspace, `support-agent-${toDigits(original)}`, undefined)
  })
})

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
