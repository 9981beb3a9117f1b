import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import { Prompts } from "../../src/application/Prompts.ts"
import { sizes } from "../../src/domain/Sizes.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../src/domain/Version.ts"
import { archive, prompt, version } from "../support/archives.ts"
import { collectLog } from "../support/collectLog.ts"
import { makeTest } from "../support/makeTest.ts"

const toCaller = ({ workspace }: Archive, tier: string = workspace.tier) => ({
  workspaceId: workspace.id,
  tier
})

const everything = { page: 1, per_page: 100 }

const test = makeTest(it.effect, Layer.provideMerge(Prompts.layer, Memory.layer))

test("a Free caller can read only the versions of the last seven days, and a Solo caller can read every version", function* () {
  const prompts = yield* Prompts
  const now = Date.UTC(2026, 5, 15, 12)
  const cutoff = now - 7 * 24 * 60 * 60 * 1000
  const one = prompt({
    versions: [cutoff - 1, cutoff].map((millis, index) =>
      version(index + 1, { created_at: toTimestamp(millis) })
    )
  })
  const own = archive({ prompts: [one] })
  yield* Memory.storeArchive(own)

  const numbersFor = Effect.fnUntraced(function* (tier: string) {
    const caller = toCaller(own, tier)
    const { items, total } = yield* prompts.listVersions(caller, one.id, everything)
    const numbers = items.map(({ version_number }) => Number(version_number))
    assert.strictEqual(total, numbers.length)
    for (const { version_number } of one.versions) {
      const read = yield* Effect.result(prompts.getVersion(caller, one.id, String(version_number)))
      assert.strictEqual(read._tag === "Success", numbers.includes(version_number))
      if (read._tag === "Failure") assert.deepStrictEqual(read.failure, VersionNotFound)
    }
    return numbers
  })

  yield* TestClock.setTime(now)
  assert.deepStrictEqual(yield* numbersFor("free"), [2])
  assert.deepStrictEqual(yield* numbersFor("solo"), [2, 1])
})

test("a read logs the id of a prompt that is too large once, even if the other prompts are too large together", function* () {
  const prompts = yield* Prompts
  const large = prompt({ current_content: "x".repeat(sizes.contentBytes + 1) })
  const half = prompt({ current_content: "x".repeat(0.6 * sizes.contentBytes) })
  const own = archive({ prompts: [large, half] })
  yield* Memory.storeArchive(own)
  const line = ["Resolved content is too large", { prompt_id: large.id }]
  const reads: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
    prompts.getResolved(toCaller(own), large.id),
    prompts.getManyResolved(toCaller(own), [large.id, large.id, half.id, half.id])
  ]
  for (const read of reads) assert.deepStrictEqual(yield* collectLog(Effect.flip(read)), [line])
})
