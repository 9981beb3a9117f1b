import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { PromptRepo } from "../application/ports/PromptRepo.ts"
import { type PromptId, PromptNotFound } from "../domain/Prompt.ts"
import { VersionNotFound } from "../domain/Version.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { archive, instant, newId, prompt, version, versionNumber } from "./archives.ts"
import { type ContractTest, type LoadWorkspace } from "./contract.ts"
import { assertReads, parseReference, wholeList } from "./promptReads.ts"

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
