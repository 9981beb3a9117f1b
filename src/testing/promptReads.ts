import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { makePromptRepo } from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import type { Archive } from "../application/transfer/Archive.ts"
import type { Page } from "../domain/Page.ts"
import type { FolderId, PromptId } from "../domain/Prompt.ts"
import { type PromptReference, toSlug } from "../domain/PromptName.ts"
import { archive as makeArchive, newId, versionNumber } from "./archives.ts"

type Repo = PromptRepo["Service"]

/** A read: the name of a method of `PromptRepo`, and its arguments. */
type Read = {
  readonly [Method in keyof Repo]: readonly [method: Method, ...args: Parameters<Repo[Method]>]
}[keyof Repo]

/** The page that contains a whole list of at most 100 items. */
const wholeList: Page = { page: 1, per_page: 100 }

/** Small pages, and pages past the end of any list, with offsets near or above the limits of integer types. */
const pages: ReadonlyArray<Page> = [
  ...[1, 2, 3, 5].flatMap((page) => [1, 2, 3].map((per_page) => ({ page, per_page }))),
  ...[21474836, 21474837, 4294967297, 92233720368547, Number.MAX_SAFE_INTEGER].map((page) => ({
    page,
    per_page: 100
  }))
]

/** Texts that are not names of tags. PostgreSQL cannot store some of these texts. */
const unknownTags = [
  ...["", " ", "\0", "a\0", "\0a", "\ud800", "\udc00", "a\ud800", "PRODUCTION", "GRÖSSE", "produc"],
  ...["production  ", "undefined", "constructor", "x".repeat(255), "x".repeat(257), "x".repeat(100_000)]
]

/** Returns filters by each folder, by each tag, by texts that are not tags, and by combinations with types. */
const makeFilters = ({ folders, tags, prompts }: Archive, foreign: Archive): ReadonlyArray<PromptFilter> => {
  const folderIds = [...folders, ...foreign.folders].map(({ id }) => id)
  const names = [...tags.map(({ name }) => name), ...unknownTags]
  const combinations = [undefined, folderIds[0], newId<FolderId>()].flatMap((folder_id) =>
    [undefined, ...names.slice(0, 2)].flatMap((tag) =>
      [undefined, prompts[0]?.prompt_type].map((type) => ({ folder_id, tag, type }))
    )
  )
  return [...combinations, ...folderIds.map((folder_id) => ({ folder_id })), ...names.map((tag) => ({ tag }))]
}

/** Returns the id of each prompt, and every name that its title and id can form, even a name of another prompt. */
const listReferences = ({ prompts }: Archive): ReadonlyArray<PromptReference> =>
  prompts.flatMap(({ id, title }): ReadonlyArray<PromptReference> => {
    const [slug, digits] = [toSlug(title), id.replaceAll("-", "")]
    return [id, { slug, digits: undefined }, { slug, digits: digits.slice(0, 8) }, { slug, digits }]
  })

/** Returns reads that call every method. Some reads use prompts, folders or tags that the workspace does not have. */
const listReads = (archive: Archive, foreign: Archive): ReadonlyArray<Read> => {
  const { id } = archive.workspace
  const unknown = [newId<PromptId>(), { slug: "no-such-name", digits: undefined }]
  const references = [...listReferences(archive), ...listReferences(foreign), ...unknown]
  const reads: Array<Read> = [["getSources", id, [...references.slice(0, 98), ...references.slice(0, 2)]]]
  for (const filter of makeFilters(archive, foreign))
    reads.push(["list", id, filter, wholeList], ["listPage", id, filter, { page: 2, per_page: 1 }])
  for (const page of [wholeList, ...pages]) {
    reads.push(["list", id, {}, page], ["listPage", id, {}, page], ["listNamed", id, page])
    for (const prompt of references.slice(0, 8)) reads.push(["listVersions", id, prompt, undefined, page])
  }
  for (const prompt of references)
    reads.push(
      ["get", id, prompt],
      ["getSource", id, prompt],
      ["listVersions", id, prompt, undefined, wholeList],
      ["getVersion", id, prompt, versionNumber(1), undefined],
      ["getVersion", id, prompt, versionNumber(2147483647), undefined]
    )
  for (const { id: prompt, versions } of archive.prompts)
    for (const oldest of [undefined, ...versions.map(({ created_at }) => created_at)]) {
      reads.push(["listVersions", id, prompt, oldest, wholeList])
      for (const { version_number } of versions)
        reads.push(["getVersion", id, prompt, version_number, oldest])
    }
  return reads
}

/** Converts a value to plain JSON. Leaves out `bytes`, because only some stores count the size of a source. */
const toPlain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, member) => (name === "bytes" ? undefined : member)))

/** Returns the result or the error of a read. */
const run = (repo: Repo, [method, ...args]: Read): Effect.Effect<unknown> => {
  const read = repo[method] as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>
  return Effect.map(Effect.result(read(...args)), toPlain)
}

/** Asserts that the store returns the same results as an in-memory adapter that has `archive`, but not `foreign`. */
export const assertReads = Effect.fnUntraced(function* (archive: Archive, foreign = makeArchive()) {
  const repo = yield* PromptRepo
  const model = makePromptRepo(new Map([[archive.workspace.id, archive]]))
  const check = Effect.fnUntraced(function* (read: Read) {
    assert.deepStrictEqual(yield* run(repo, read), yield* run(model, read), JSON.stringify(read))
  })
  const reads = listReads(archive, foreign)
  const unread = Object.keys(model).filter((name) => reads.every(([method]) => method !== name))
  assert.deepStrictEqual(unread, [], "listReads contains every method")
  yield* Effect.forEach(reads, check, { concurrency: 4, discard: true })
})
