import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { makePromptRepo } from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import { type PromptFilter, PromptRepo } from "../application/ports/PromptRepo.ts"
import type { Archive } from "../application/transfer/Archive.ts"
import type { Page } from "../domain/Page.ts"
import {
  type FolderId,
  parsePromptReference,
  type PromptId,
  type PromptReference,
  type PromptType
} from "../domain/Prompt.ts"
import { findName } from "../domain/PromptName.ts"
import type { VersionNumber } from "../domain/Version.ts"
import { newId } from "./archives.ts"

type Repo = PromptRepo["Service"]

/** A read: the name of a method of `PromptRepo`, and its arguments. */
type Read = {
  readonly [Method in keyof Repo]: readonly [method: Method, ...args: Parameters<Repo[Method]>]
}[keyof Repo]

/** The page that contains a whole list of at most 100 items. */
export const wholeList: Page = { page: 1, per_page: 100 }

/** Small pages, and pages past the end of any list, around the limits of integers with 32 and 64 bits. */
const pages: ReadonlyArray<Page> = [
  ...[1, 2, 3, 5].flatMap((page) => [1, 2, 3].map((per_page) => ({ page, per_page }))),
  ...[21474836, 21474837, 4294967297, 92233720368547, Number.MAX_SAFE_INTEGER].map((page) => ({
    page,
    per_page: 100
  }))
]

const withUndefined = <A>(values: ReadonlyArray<A>): ReadonlyArray<A | undefined> => [
  undefined,
  ...new Set(values)
]

export const parseReference = (text: string): PromptReference => {
  const reference = parsePromptReference(text)
  assert.ok(reference !== undefined, text)
  return reference
}

/**
 * Returns filters with all combinations of a few folders, tags and types. Each of the three may also be absent from a
 * filter. One folder and one tag do not exist in the archive.
 */
const makeFilters = ({ folders, tags, prompts }: Archive): ReadonlyArray<PromptFilter> => {
  const folderIds = [...folders.slice(0, 2).map(({ id }) => id), newId<FolderId>()]
  const tagNames = [...tags.slice(0, 2).map(({ name }) => name), "no such tag"]
  const types: ReadonlyArray<PromptType> = prompts.slice(0, 1).map(({ prompt_type }) => prompt_type)
  return withUndefined(folderIds).flatMap((folder_id) =>
    withUndefined(tagNames).flatMap((tag) => withUndefined(types).map((type) => ({ folder_id, tag, type })))
  )
}

/** Returns the ids and the names of the prompts of a workspace. */
export const listReferences = ({ prompts }: Archive): ReadonlyArray<PromptReference> => [
  ...prompts.map(({ id }) => id),
  ...prompts
    .filter(({ is_archived }) => !is_archived)
    .map((prompt) => parseReference(findName(prompts, prompt)))
]

/** Returns reads of every method, with prompts and filters that exist in the workspace, and some that do not. */
const listReads = (archive: Archive, foreign: ReadonlyArray<PromptReference>): ReadonlyArray<Read> => {
  const { id } = archive.workspace
  const unknown = [...foreign, newId<PromptId>(), parseReference("no-such-name")]
  const references = [...unknown, ...listReferences(archive)]
  const reads: Array<Read> = [
    ["listNamed", id, wholeList],
    ["getSources", id, [...references, ...references.slice(0, 2)]]
  ]
  for (const filter of makeFilters(archive))
    for (const page of [wholeList, { page: 2, per_page: 1 }])
      reads.push(["list", id, filter, page], ["listPage", id, filter, page])
  for (const page of pages)
    reads.push(["list", id, {}, page], ["listPage", id, { tag: "none" }, page], ["listNamed", id, page])
  for (const prompt of references)
    reads.push(
      ["get", id, prompt],
      ["getSource", id, prompt],
      ["listVersions", id, prompt, undefined, wholeList]
    )
  for (const { id: prompt, versions } of archive.prompts)
    for (const { version_number } of versions)
      reads.push(["getVersion", id, prompt, version_number, undefined])

  const versions = archive.prompts.slice(0, 3).flatMap((prompt) => prompt.versions)
  const numbers = new Set([...versions.map(({ version_number }) => version_number), 1, 2147483647])
  for (const prompt of references.slice(0, unknown.length + 3)) {
    for (const page of pages) reads.push(["listVersions", id, prompt, undefined, page])
    for (const oldest of withUndefined(versions.map(({ created_at }) => created_at))) {
      reads.push(["listVersions", id, prompt, oldest, wholeList])
      for (const number of numbers) reads.push(["getVersion", id, prompt, number as VersionNumber, oldest])
    }
  }
  return reads
}

/** Converts a value to plain JSON. Leaves out `bytes`, the size of a source, which only some stores count. */
const toPlain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (name, member) => (name === "bytes" ? undefined : member)))

/** Returns the result or the error of a read. */
const run = (repo: Repo, [method, ...args]: Read): Effect.Effect<unknown> => {
  const read = repo[method] as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>
  return Effect.map(Effect.result(read(...args)), toPlain)
}

/**
 * Asserts that the reads of a workspace return what the in-memory adapter returns when it has only this workspace. The
 * prompts `foreign` are not in the workspace.
 */
export const assertReads = Effect.fnUntraced(function* (
  archive: Archive,
  foreign: ReadonlyArray<PromptReference> = []
) {
  const repo = yield* PromptRepo
  const model = makePromptRepo({ workspaces: new Map([[archive.workspace.id, archive]]) })
  const check = Effect.fnUntraced(function* (read: Read) {
    assert.deepStrictEqual(yield* run(repo, read), yield* run(model, read), JSON.stringify(read))
  })
  yield* Effect.forEach(listReads(archive, foreign), check, { concurrency: 10, discard: true })
})
