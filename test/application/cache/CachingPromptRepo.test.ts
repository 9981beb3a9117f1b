import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { layer } from "../../../src/application/cache/CachingPromptRepo.ts"
import { WorkspaceRevisions } from "../../../src/application/cache/FeedState.ts"
import { type PromptFilter, PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import type { Page } from "../../../src/domain/Page.ts"
import { PromptNotFound } from "../../../src/domain/Prompt.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { switchedFeed } from "../../support/database/switchedFeed.ts"

const [own, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
const first: Page = { page: 1, per_page: 20 }
const second: Page = { page: 2, per_page: 20 }

/** Caches a repo whose lists have the total `state.count`. `beforeResult(n)` runs before read n returns. */
const makeCache = Effect.fnUntraced(function* (
  beforeResult: (n: number) => Effect.Effect<void> = () => Effect.void
) {
  const changes = new WorkspaceRevisions()
  const feed = switchedFeed(changes)
  /** The calls of the repo in order: `list` counts the prompts, `listPage` does not. */
  const reads: Array<"list" | "listPage"> = []
  const state = { count: 7, gets: 0 }
  const unexpected = () => Effect.die("unexpected call")
  const repo = Layer.succeed(PromptRepo, {
    list: () =>
      Effect.suspend(() => {
        const { count } = state
        return Effect.as(beforeResult(reads.push("list")), { items: [], total: count })
      }),
    listPage: () => Effect.suspend(() => Effect.as(beforeResult(reads.push("listPage")), [])),
    get: () =>
      Effect.suspend(() => {
        state.gets++
        return Effect.andThen(beforeResult(state.gets), Effect.fail(PromptNotFound))
      }),
    listNamed: unexpected,
    getSources: unexpected,
    getSource: unexpected,
    listVersions: unexpected,
    getVersion: unexpected
  })
  const context = yield* Layer.build(layer.pipe(Layer.provide([repo, feed.layer])))
  const cached = Context.get(context, PromptRepo)
  const total = (filter: PromptFilter = {}, page = first, workspace = own) =>
    Effect.map(cached.list(workspace, filter, page), ({ total }) => total)
  return { changes, feed, reads, state, cached, total }
})

/** Forks an effect and runs the fiber until the fiber waits. */
const start = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("CachingPromptRepo", () => {
  it.effect(
    "CachingPromptRepo counts the prompts of a filter once for all pages, until something in the workspace changes",
    () =>
      Effect.gen(function* () {
        const { changes, state, reads, total } = yield* makeCache()
        assert.deepStrictEqual([yield* total(), yield* total({}, second)], [7, 7])
        changes.invalidate(other)
        assert.strictEqual(yield* total(), 7)
        assert.deepStrictEqual(reads, ["list", "listPage", "listPage"])
        state.count = 8
        changes.invalidate(own)
        assert.deepStrictEqual([yield* total(), yield* total({}, second)], [8, 8])
        assert.deepStrictEqual(reads.slice(3), ["list", "listPage"])
      })
  )

  it.effect("CachingPromptRepo counts each filter of each workspace separately", () =>
    Effect.gen(function* () {
      const { reads, total } = yield* makeCache()
      const filters: ReadonlyArray<PromptFilter> = [
        {},
        { tag: "" },
        { tag: "null" },
        { tag: "user" },
        { type: "user" },
        { tag: "\ud800" },
        { tag: "\ufffd" },
        { tag: 'a","b' }
      ]
      for (const workspace of [own, other])
        for (const filter of filters) yield* total(filter, first, workspace)
      assert.deepStrictEqual(
        reads,
        [...filters, ...filters].map(() => "list")
      )
    })
  )

  it.effect("CachingPromptRepo counts the prompts again if the workspace changed while a page was read", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { changes, state, reads, total } = yield* makeCache((n) =>
        n === 2 ? Deferred.await(gate) : Effect.void
      )
      yield* total()
      const slow = yield* start(total())
      state.count = 8
      changes.invalidate(own)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(slow), 8)
      assert.deepStrictEqual(reads, ["list", "listPage", "list"])
    })
  )
})
