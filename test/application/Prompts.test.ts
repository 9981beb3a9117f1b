import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import { Prompts, ReadGate, withRequestDeadline } from "../../src/application/Prompts.ts"
import { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import { PromptNotFound } from "../../src/domain/Prompt.ts"
import { sizes } from "../../src/domain/Sizes.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"
import { VersionNotFound } from "../../src/domain/Version.ts"
import { archive, newId, prompt, version, workspace } from "../support/archives.ts"
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

test("a read with a malformed id or version number fails without a query", function* () {
  const withoutStore = Layer.succeed(PromptRepo, {} as PromptRepo["Service"])
  const prompts = yield* Effect.provide(Prompts, Layer.provide(Layer.fresh(Prompts.layer), withoutStore))
  const caller = { workspaceId: workspace().id, tier: "solo" } as const
  assert.deepStrictEqual(yield* Effect.flip(prompts.getResolved(caller, "A b")), PromptNotFound)
  assert.deepStrictEqual(yield* Effect.flip(prompts.getVersion(caller, newId(), "0")), VersionNotFound)
})

test("a read logs the id of a prompt that is too large only once, even if the other prompts together are too large", function* () {
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

test("ReadGate runs at most 12 reads of a workspace at a time, even after the scope of its layer has closed", function* () {
  const { withPermit } = yield* Effect.provide(ReadGate, Layer.fresh(ReadGate.layer))
  const end = Latch.makeUnsafe()
  const running = [0, 0]
  const all = [workspace().id, workspace().id].flatMap((id, index) => {
    const read = Effect.andThen(
      Effect.sync(() => running[index]!++),
      end.await
    )
    return Array.from({ length: 20 }, () => withPermit(id, read))
  })
  const fiber = yield* Effect.forkChild(Effect.all(all, { concurrency: "unbounded" }))
  yield* Effect.yieldNow
  assert.deepStrictEqual(running, [12, 12])
  end.openUnsafe()
  yield* Fiber.join(fiber)
  assert.deepStrictEqual(running, [20, 20])
})

test("ReadGate lets other work run between two large steps, and small steps do not wait for large steps", function* () {
  const { runStep } = yield* ReadGate
  const order: Array<string> = []
  const add = (name: string) => () => void order.push(name)
  const large = runStep(1024 * 1024, () => {
    order.push("large")
    setImmediate(add("other"))
  })
  yield* Effect.all([large, large, runStep(1, add("small"))], { concurrency: "unbounded" })
  assert.deepStrictEqual(order, ["small", "large", "other", "large"])
})

test("withRequestDeadline returns the outcome of reads that end before the deadline", function* () {
  for (const reads of [Effect.succeed(1), Effect.fail("no"), Effect.die("unexpected"), Effect.yieldNow]) {
    const expected: Exit.Exit<unknown, unknown> = yield* Effect.exit(reads)
    assert.deepStrictEqual(yield* Effect.exit(withRequestDeadline(reads)), expected)
  }
})

test("withRequestDeadline fails after 5 s, even if the reads cannot be interrupted", function* () {
  for (const reads of [Effect.never, Effect.uninterruptible(Effect.never)]) {
    const fiber = yield* Effect.forkChild(withRequestDeadline(reads), { startImmediately: true })
    yield* TestClock.adjust(4_999)
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust(1)
    assert.deepStrictEqual(yield* Fiber.await(fiber), Exit.fail(Unavailable))
  }
})

test("withRequestDeadline interrupts the reads after the deadline, and when its caller is interrupted", function* () {
  for (const end of [() => TestClock.adjust(5_000), Fiber.interrupt]) {
    const interrupted = yield* Deferred.make<void>()
    const reads = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
    yield* end(yield* Effect.forkChild(withRequestDeadline(reads), { startImmediately: true }))
    yield* Deferred.await(interrupted)
  }
})
