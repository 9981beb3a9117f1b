import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { layer } from "../../../src/application/cache/CachingPromptRepo.ts"
import { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import { type Page, paginate } from "../../../src/domain/Page.ts"
import type { PromptSummary } from "../../../src/domain/Prompt.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { SwitchedFeed } from "../../support/database/switchedFeed.ts"
import { makeTest } from "../../support/makeTest.ts"

const test = makeTest(it.effect)

const own = newId<WorkspaceId>()
const summary = {} as PromptSummary
const first: Page = { page: 1, per_page: 20 }
const second: Page = { page: 2, per_page: 20 }

/** Caches a repo whose lists have the total `state.count`. `beforeResult(n)` runs before read n returns. */
const makeCache = Effect.fnUntraced(function* (
  beforeResult: (n: number) => Effect.Effect<void> = () => Effect.void
) {
  const feed = new SwitchedFeed()
  /** The calls of the repo in order. `list` counts the prompts, and `listPage` does not. */
  const reads: Array<"list" | "listPage"> = []
  const state = { count: 7 }
  const read = (method: "list" | "listPage", page: Page) =>
    Effect.suspend(() => {
      const result = paginate(
        Array.from({ length: state.count }, () => summary),
        page
      )
      return Effect.as(beforeResult(reads.push(method)), result)
    })
  const repo = Layer.mock(PromptRepo, {
    list: (_, __, page) => read("list", page),
    listPage: (_, __, page) => Effect.map(read("listPage", page), ({ items }) => items)
  })
  const context = yield* Layer.build(layer.pipe(Layer.provide([repo, feed.layer])))
  const cached = Context.get(context, PromptRepo)
  const total = (page = first) => Effect.map(cached.list(own, {}, page), ({ total }) => total)
  return { feed, reads, state, total }
})

test("CachingPromptRepo counts the prompts of a filter once for all pages, until something in the workspace changes", function* () {
  const { feed, state, reads, total } = yield* makeCache()
  assert.deepStrictEqual([yield* total(), yield* total(second)], [7, 7])
  feed.invalidate(newId())
  assert.strictEqual(yield* total(), 7)
  assert.deepStrictEqual(reads, ["list", "listPage", "listPage"])
  state.count = 8
  feed.invalidate(own)
  assert.deepStrictEqual([yield* total(), yield* total(second)], [8, 8])
  assert.deepStrictEqual(reads.slice(3), ["list", "listPage"])
})

test("CachingPromptRepo counts the prompts again if the items of a page show that the cached total is too old", function* () {
  const { state, reads, total } = yield* makeCache()
  yield* total()
  state.count = 8
  assert.strictEqual(yield* total(), 8)
  assert.deepStrictEqual(reads, ["list", "listPage", "list"])
})

test("CachingPromptRepo does not repeat the read of a page if another read counts the prompts in the meantime", function* () {
  const gates = [1, 2, 3].map(() => Deferred.makeUnsafe<void>())
  const { reads, total } = yield* makeCache((n) => Deferred.await(gates[n - 1]!))
  const start = (page: Page) => Effect.forkChild(total(page), { startImmediately: true })
  const finish = Effect.fnUntraced(function* (n: number, fiber: Fiber.Fiber<number, unknown>) {
    yield* Deferred.succeed(gates[n - 1]!, undefined)
    assert.strictEqual(yield* Fiber.join(fiber), 7)
  })
  const [one, two] = [yield* start(first), yield* start(first)]
  yield* finish(1, one)
  const page = yield* start(second)
  yield* finish(2, two)
  yield* finish(3, page)
  assert.deepStrictEqual(reads, ["list", "list", "listPage"])
})

test("CachingPromptRepo counts the prompts again if the workspace changed while a page was read", function* () {
  const gate = yield* Deferred.make<void>()
  const { feed, state, reads, total } = yield* makeCache((n) =>
    n === 2 ? Deferred.await(gate) : Effect.void
  )
  yield* total()
  const slow = yield* Effect.forkChild(total(), { startImmediately: true })
  state.count = 8
  feed.invalidate(own)
  yield* Deferred.succeed(gate, undefined)
  assert.strictEqual(yield* Fiber.join(slow), 8)
  assert.deepStrictEqual(reads, ["list", "listPage", "list"])
})
