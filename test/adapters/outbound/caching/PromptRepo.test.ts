import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { layer } from "../../../../src/adapters/outbound/caching/CachingPromptRepo.ts"
import { WorkspaceRevisions } from "../../../../src/application/ports/ChangeFeed.ts"
import { type PromptFilter, PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import type { Page } from "../../../../src/domain/Page.ts"
import { type PromptId, PromptNotFound, type WorkspaceId } from "../../../../src/domain/Prompt.ts"
import { newId } from "../../../support/archives.ts"
import { switchedFeed } from "./switchedFeed.ts"

const [own, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
const first: Page = { page: 1, per_page: 20 }
const second: Page = { page: 2, per_page: 20 }

interface Asked {
  readonly workspace: WorkspaceId
  readonly filter: PromptFilter
  readonly page: Page
  readonly total: number | undefined
}

/** A repo whose lists hold as many prompts as `count` says, behind the cache; `answering` runs before each answer. */
const setUp = Effect.fnUntraced(function* (
  answering: (asked: number) => Effect.Effect<void> = () => Effect.void
) {
  const changes = new WorkspaceRevisions()
  const feed = switchedFeed(changes)
  const asked: Array<Asked> = []
  const state = { count: 7, gets: 0 }
  const never = () => Effect.die("not asked for")
  const repo = Layer.succeed(PromptRepo, {
    list: (workspace, filter, page, total) =>
      Effect.suspend(() => {
        const { count } = state
        const n = asked.push({ workspace, filter, page, total })
        return Effect.as(answering(n), { items: [], total: total ?? count })
      }),
    get: () =>
      Effect.suspend(() => {
        state.gets++
        return Effect.andThen(answering(state.gets), Effect.fail(PromptNotFound))
      }),
    getSource: never,
    listVersions: never,
    getVersion: never
  })
  const context = yield* Layer.build(layer.pipe(Layer.provide([repo, feed.layer])))
  const cached = Context.get(context, PromptRepo)
  const total = (filter: PromptFilter = {}, page = first, workspace = own) =>
    Effect.map(cached.list(workspace, filter, page), ({ total }) => total)
  /** The totals that were told to the repo, in order; undefined where it had to count. */
  const told = () => asked.map(({ total }) => total)
  return { changes, feed, asked, state, cached, total, told }
})

const begin = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

describe("the cache of totals", () => {
  it.effect("counts once for all pages of a filter, until something of the workspace changes", () =>
    Effect.gen(function* () {
      const { changes, state, told, total } = yield* setUp()
      assert.deepStrictEqual([yield* total(), yield* total({}, second)], [7, 7])
      changes.invalidate(other)
      yield* total()
      assert.deepStrictEqual(told(), [undefined, 7, 7])
      state.count = 8
      changes.invalidate(own)
      assert.deepStrictEqual([yield* total(), yield* total({}, second)], [8, 8])
      assert.deepStrictEqual(told().slice(3), [undefined, 8])
    })
  )

  it.effect("tells filters and workspaces apart", () =>
    Effect.gen(function* () {
      const { told, total } = yield* setUp()
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
        told(),
        told().map(() => undefined)
      )
    })
  )

  it.effect("knows no total while the feed is down", () =>
    Effect.gen(function* () {
      const { feed, told, total } = yield* setUp()
      yield* total()
      feed.isUp = false
      yield* total()
      yield* total({ type: "user" })
      feed.isUp = true
      yield* total({ type: "user" })
      assert.deepStrictEqual(told(), [undefined, undefined, undefined, undefined])
    })
  )

  it.effect("counts anew where the workspace changed while the page was read with a known total", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { changes, state, told, total } = yield* setUp((n) =>
        n === 2 ? Deferred.await(gate) : Effect.void
      )
      yield* total()
      const slow = yield* begin(total())
      state.count = 8
      changes.invalidate(own)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(slow), 8)
      assert.deepStrictEqual(told(), [undefined, 7, undefined])
    })
  )

  it.effect("keeps no total that was counted before a change that came meanwhile", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { changes, state, told, total } = yield* setUp((n) =>
        n === 1 ? Deferred.await(gate) : Effect.void
      )
      const slow = yield* begin(total())
      state.count = 8
      changes.invalidate(own)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(slow), 7)
      assert.deepStrictEqual([yield* total(), told()], [8, [undefined, undefined]])
    })
  )
})

describe("reads of the same thing at the same time", () => {
  const read = (id: PromptId) => Effect.flip(Effect.flatMap(PromptRepo, (repo) => repo.get(own, id)))

  it.effect("are one, failures too, whoever leaves; after a change they are not", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { cached, changes, feed, state } = yield* setUp(() => Deferred.await(gate))
      const [id, another] = [newId<PromptId>(), newId<PromptId>()]
      const get = (id: PromptId) => begin(Effect.provideService(read(id), PromptRepo, cached))
      const same = yield* Effect.forEach([1, 2, 3], () => get(id))
      assert.strictEqual(state.gets, 1)
      yield* get(another)
      assert.strictEqual(state.gets, 2)
      changes.invalidate(other)
      yield* get(id)
      assert.strictEqual(state.gets, 2)
      changes.invalidate(own)
      const later = yield* get(id)
      assert.strictEqual(state.gets, 3)
      feed.isUp = false
      const unheard = yield* get(id)
      assert.strictEqual(state.gets, 4)
      yield* Fiber.interrupt(same[0]!)
      yield* Deferred.succeed(gate, undefined)
      assert.deepStrictEqual(
        yield* Fiber.joinAll([...same.slice(1), later, unheard]),
        [1, 2, 3, 4].map(() => PromptNotFound)
      )
    })
  )
})
