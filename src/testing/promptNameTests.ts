import { withoutBytes } from "./promptContentTests.ts"
import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as model from "../adapters/outbound/memory/MemoryPromptRepo.ts"
import { PromptRepo } from "../application/ports/PromptRepo.ts"
import { parsePromptReference, type PromptId, PromptNotFound } from "../domain/Prompt.ts"
import { findName, findPrompt } from "../domain/PromptName.ts"
import { VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { archive, instant, newId, prompt, version, versionNumber } from "./archives.ts"
import { assertPages, type ContractTests, type LoadWorkspace, wholeList } from "./contract.ts"
import { archives } from "./generatedArchives.ts"

const parse = (text: string) => {
  const reference = parsePromptReference(text)
  assert.ok(reference !== undefined, text)
  return reference
}

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
  const reference = parse(name)
  const number = versionNumber(1)
  const reads: ReadonlyArray<Effect.Effect<PromptId | undefined, unknown>> = [
    Effect.map(repo.get(workspace, reference), (found) => found.id),
    Effect.map(repo.getSource(workspace, reference), (found) => found.id),
    Effect.as(repo.listVersions(workspace, reference, undefined, wholeList), id),
    Effect.map(repo.getVersion(workspace, reference, number, undefined), ({ prompt_id }) => prompt_id)
  ]
  for (const [index, read] of reads.entries()) {
    const result = yield* Effect.match(read, { onFailure: (error) => error, onSuccess: (found) => found })
    const missing = index === 3 ? VersionNotFound : PromptNotFound
    assert.deepStrictEqual(result, id ?? missing, `${name}, read ${index}`)
  }
})

/** Adds the tests of the names of prompts. */
export const addNameTests = <R>(suite: ContractTests<PromptRepo | R>, load: LoadWorkspace<R>): void => {
  suite.addProperty(
    "PromptRepo.listNamed returns the names that the in-memory adapter returns, and each name finds its prompt",
    archives,
    Effect.fnUntraced(function* (archive) {
      const repo = yield* PromptRepo
      yield* load(archive)
      const workspace = archive.workspace.id
      const named = model.listPrompts(archive, {}).map(({ id, title, description }) => ({
        id,
        name: findName(archive.prompts, { id, title }),
        title,
        description
      }))
      yield* assertPages(
        (page) => Effect.map(repo.listNamed(workspace, page), (items) => ({ items, total: named.length })),
        named
      )
      for (const { id, name } of named) {
        const reference = parse(name)
        assert.strictEqual(findPrompt(archive.prompts, reference)?.id, id)
        assert.strictEqual((yield* repo.get(workspace, reference)).id, id)
        assert.strictEqual((yield* repo.getSource(workspace, reference)).id, id)
      }
    })
  )

  suite.addProperty(
    "PromptRepo.getSources returns what getSource returns and the name of each prompt, in the given order, without unknown prompts",
    archives,
    Effect.fnUntraced(function* (archive) {
      const repo = yield* PromptRepo
      yield* load(archive)
      const workspace = archive.workspace.id
      const ids = archive.prompts.map(({ id }) => id)
      const names = model.listPrompts(archive, {}).map((prompt) => parse(findName(archive.prompts, prompt)))
      const references = [newId<PromptId>(), ...names, parse("no-such-name"), ...ids, ...names.slice(0, 2)]
      const sources = yield* repo.getSources(workspace, references)
      const expected = references.flatMap((reference, index) => {
        const prompt = findPrompt(archive.prompts, reference)
        if (prompt === undefined) return []
        const name = findName(archive.prompts, prompt)
        return [{ index, name, source: model.getSource(archive, prompt) }]
      })
      assert.deepStrictEqual(
        sources.map(({ index, name, source }) => ({
          index,
          name,
          source: withoutBytes(Result.getOrThrow(source))
        })),
        expected
      )
      assert.deepStrictEqual(yield* repo.getSources(newId<WorkspaceId>(), references), [])
    })
  )

  suite.add(
    "a slug belongs to the oldest prompt that is not archived, and digits of the id reach the other prompts",
    () =>
      Effect.gen(function* () {
        const [early, late] = [instant("2026-01-01"), instant("2026-01-02")]
        const title = "Support agent"
        const copy = prompt({ id: makeId("aaaaaaaa", 2), title, created_at: late, versions: [version(1)] })
        const original = prompt({
          id: makeId("aaaaaaaa", 3),
          title,
          created_at: early,
          versions: [version(1)]
        })
        const twin = prompt({
          id: makeId("bbbbbbbb", 1),
          title: "support  AGENT!",
          created_at: late,
          versions: [version(1)]
        })
        const archived = prompt({
          id: makeId("aaaaaaaa", 1),
          title,
          created_at: instant("2025-01-01"),
          is_archived: true,
          versions: [version(1)]
        })
        const dated = prompt({ id: makeId("cccccccc", 1), title: "Release 20260101", versions: [version(1)] })
        const likeId = prompt({
          id: makeId("dddddddd", 1),
          title: makeId("dddddddd", 2),
          versions: [version(1)]
        })
        const japanese = prompt({ id: makeId("eeeeeeee", 1), title: "プロンプト", versions: [version(1)] })
        const stored = archive({ prompts: [copy, original, twin, archived, dated, likeId, japanese] })
        const other = archive({ prompts: [prompt({ title: "Foreign", versions: [version(1)] })] })
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

        // The original is renamed, so the slug passes to the next prompt.
        const renamed = { ...original, title: "Agent for support" }
        yield* load({ ...stored, prompts: [copy, renamed, twin, archived] })
        yield* assertName(workspace, "support-agent", copy.id)
        yield* assertName(workspace, "agent-for-support", original.id)
        yield* assertName(workspace, `support-agent-${toDigits(original)}`, undefined)
      })
  )
}
