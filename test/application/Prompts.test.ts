import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import { Prompts } from "../../src/application/Prompts.ts"
import { sizes } from "../../src/domain/Sizes.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../src/domain/Version.ts"
import { archive, prompt, version } from "../support/archives.ts"
import { collectLog } from "../support/collectLog.ts"
import { makeTest } from "../support/makeTest.ts"

const test = makeTest(it.effect, Layer.provideMerge(Prompts.layer, Memory.layer))

test("a Free caller can read only the versions of the last seven days, and a Solo caller can read every version", function* () {
  const prompts = yield* Prompts
  const now = Date.UTC(2026, 5, 15, 12)
  const cutoff = now - 7 * 24 * 60 * 60 * 1000
  const created = [cutoff - 1, cutoff].map((millis) => ({ created_at: toTimestamp(millis) }))
  const one = prompt({ versions: created.map((time, index) => version(index + 1, time)) })
  const own = archive({ prompts: [one] })
  yield* Memory.storeArchive(own)
  yield* TestClock.setTime(now)
  for (const [tier, numbers] of Object.entries({ free: [2], solo: [2, 1] })) {
    const caller = { workspaceId: own.workspace.id, tier }
    const { items, total } = yield* prompts.listVersions(caller, one.id, { page: 1, per_page: 100 })
    assert.deepStrictEqual([items.map((item) => item.version_number), total], [numbers, numbers.length])
    for (const number of [1, 2]) {
      const read = yield* Effect.result(prompts.getVersion(caller, one.id, String(number)))
      const found = Result.merge(Result.map(read, (version) => version.version_number))
      assert.deepStrictEqual<unknown>(found, numbers.includes(number) ? number : VersionNotFound)
    }
  }
})

test("a read logs once the id of a prompt that is too large, even if the other prompts are too large together", function* () {
  const prompts = yield* Prompts
  const large = prompt({ current_content: "x".repeat(sizes.contentBytes + 1) })
  const half = prompt({ current_content: "x".repeat(0.6 * sizes.contentBytes) })
  const own = archive({ prompts: [large, half] })
  yield* Memory.storeArchive(own)
  const caller = { workspaceId: own.workspace.id, tier: "solo" }
  const line = ["Resolved content is too large", { prompt_id: large.id }]
  const [one, many] = [large.id, [large.id, large.id, half.id, half.id]]
  assert.deepStrictEqual(yield* collectLog(Effect.flip(prompts.getResolved(caller, one))), [line])
  assert.deepStrictEqual(yield* collectLog(Effect.flip(prompts.getManyResolved(caller, many))), [line])
})
