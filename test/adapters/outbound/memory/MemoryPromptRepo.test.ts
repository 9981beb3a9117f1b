import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { makePromptRepo } from "../../../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import type { PromptId } from "../../../../src/domain/Prompt.ts"
import { makeKeyStoreTests } from "../../../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../../../src/testing/promptRepoTests.ts"
import { runContract } from "../../../contracts/runContract.ts"
import {
  archive,
  fragment,
  fragmentBinding,
  instant,
  prompt,
  tag,
  version
} from "../../../support/archives.ts"

runContract("PromptRepo: memory", makePromptRepoTests(Memory.storeArchive), Memory.layer)
runContract("KeyStore: memory", makeKeyStoreTests(Memory.storeArchive), Memory.layer)

// The expected results of the contract of PromptRepo come from the in-memory adapter, so this file tests the adapter
// with literal results.

const toId = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}` as PromptId
const tags = ["production", "Production", "ä"].map((name) => tag(name))
const [lower, ...others] = tags.map(({ id }) => id)
const fragments = ["a", "b", "c"].map((content) => fragment(content))
const bindings = fragments.map((each, n) => fragmentBinding(each, (n + 1) % 2, { id: toId(9 - n) }))
const versions = [1, 3, 2].map((n) => version(n, { created_at: instant(`2026-01-0${n}`) }))
const prompts = [
  prompt({ id: toId(1), updated_at: instant("2026-01-01"), tags: [lower!] }),
  prompt({ id: toId(3), updated_at: instant("2026-01-02"), tags: others }),
  prompt({ id: toId(2), updated_at: instant("2026-01-02"), tags: [lower!] }),
  prompt({ id: toId(4), is_archived: true, tags: [...others, lower!], fragments: bindings, versions })
]
const stored = archive({ tags, fragments, prompts })
const { id } = stored.workspace
const repo = makePromptRepo(new Map([[id, stored]]))
const page = { page: 1, per_page: 100 }

it.each([
  [undefined, [3, 2, 1]],
  ["production", [2, 1]]
])(
  "the list with the tag %j has no archived prompts, and is in descending order of updated_at and id",
  (tag, digits) => {
    const { items, total } = Effect.runSync(repo.list(id, { tag }, page))
    assert.deepStrictEqual([items.map(({ id }) => id), total], [digits.map(toId), digits.length])
  }
)

it("an archived prompt has its tags in byte order, its fragments by position and id, and its versions since `oldest` in descending order", () => {
  const { tags } = Effect.runSync(repo.get(id, toId(4)))
  const source = Effect.runSync(repo.getSource(id, toId(4)))
  const listed = Effect.runSync(repo.listVersions(id, toId(4), versions[2]!.created_at, page))
  assert.deepStrictEqual(
    [
      tags.map(({ name }) => name),
      source.fragments.map(({ content }) => content),
      listed.items.map((item) => item.version_number),
      listed.total
    ],
    [["Production", "production", "ä"], ["b", "c", "a"], [3, 2], 2]
  )
})
