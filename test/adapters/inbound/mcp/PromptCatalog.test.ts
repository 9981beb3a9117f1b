import { setTimeout } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Outage from "../../../../src/application/cache/Outage.ts"
import { makePromptCatalogs } from "../../../../src/adapters/inbound/mcp/PromptCatalog.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import { PromptTitles } from "../../../../src/application/ports/PromptTitles.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { Prompts } from "../../../../src/application/reading/Prompts.ts"
import { sizes } from "../../../../src/domain/Sizes.ts"
import { archive, instant, prompt, workspace } from "../../../support/archives.ts"
import * as MemoryTitles from "../../../support/database/memoryTitles.ts"
import { switchedFeed } from "../../../support/database/switchedFeed.ts"

/** Makes the catalog of a workspace with these prompts. The store records reads and can be made unavailable. */
const makeCatalog = Effect.fnUntraced(function* (prompts: ReadonlyArray<ReturnType<typeof prompt>>) {
  const feed = switchedFeed()
  const store = { isAway: false, reads: [] as Array<PropertyKey>, onRead: (_: PropertyKey): void => {} }
  const watched = <Service extends object>(service: Service): Service =>
    new Proxy(service, {
      get:
        (target, name) =>
        (...args: Array<unknown>) => {
          store.reads.push(name)
          store.onRead(name)
          return store.isAway
            ? Effect.fail(Unavailable)
            : Reflect.apply(Reflect.get(target, name) as (...args: Array<unknown>) => unknown, target, args)
        }
    })
  const ports = Layer.mergeAll(
    Layer.effect(PromptRepo, Effect.map(PromptRepo, watched)),
    Layer.effect(PromptTitles, Effect.map(PromptTitles, watched)).pipe(Layer.provide(MemoryTitles.layer))
  )
  const services = yield* Layer.build(
    Prompts.layer.pipe(
      Layer.provideMerge(ports),
      Layer.provideMerge(Layer.mergeAll(Memory.layer, feed.layer, Outage.offLayer))
    )
  )
  const home = workspace()
  yield* Effect.provideContext(storeArchive(archive({ workspace: home, prompts })), services)
  const catalogs = yield* Effect.provideContext(makePromptCatalogs, services)
  return { feed, store, home, catalog: catalogs({ workspaceId: home.id, tier: "team" }) }
})

const at = (second: number) => instant(new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString())

describe("the catalog of a workspace", () => {
  it.effect("the catalog reads a prompt only once until something in the workspace changes", () =>
    Effect.gen(function* () {
      const { catalog, store, feed, home } = yield* makeCatalog([
        prompt({ title: "Greeting", current_content: "{{a}}" })
      ])
      const expected = { prompt_type: "system", content: "{{a}}", slots: ["a"] }
      assert.deepStrictEqual(yield* catalog.get("greeting"), expected as never)
      assert.deepStrictEqual(store.reads.splice(0), ["listAfter", "getSource"])
      assert.deepStrictEqual(yield* catalog.get("greeting"), expected as never)
      assert.deepStrictEqual(store.reads, [])
      feed.changes.invalidate(home.id)
      yield* catalog.get("greeting")
      assert.deepStrictEqual(store.reads, ["listAfter", "getSource"])
    }).pipe(Effect.scoped)
  )

  it.effect("while the store is unavailable, the catalog fails instead of returning an empty list", () =>
    Effect.gen(function* () {
      const { catalog, store, feed } = yield* makeCatalog([prompt({ title: "Greeting" })])
      yield* catalog.list(undefined)
      yield* catalog.get("greeting")
      store.isAway = true
      const away = { code: 503, status: 503, message: "Service unavailable" }
      assert.include(yield* Effect.flip(catalog.list(undefined)), away)
      // While the feed is down, the service does not notice changes, so nothing is served from a cache.
      feed.isUp = false
      assert.include(yield* Effect.flip(catalog.get("greeting")), away)
      assert.include(yield* Effect.flip(catalog.list(undefined)), away)
    }).pipe(Effect.scoped)
  )

  it.effect("a prompt that is too large is listed without arguments, and getting the prompt fails", () =>
    Effect.gen(function* () {
      const { catalog } = yield* makeCatalog([
        prompt({ title: "Large", current_content: `{{a}}${"x".repeat(sizes.contentBytes)}` })
      ])
      assert.deepStrictEqual(
        (yield* catalog.list(undefined)).prompts.map(({ name, slots }) => [name, slots]),
        [["large", []]]
      )
      const error = yield* Effect.flip(catalog.get("large"))
      assert.deepStrictEqual(
        [error.code, error.status, error.data],
        [422, 200, { code: "RESOLVED_TOO_LARGE" }]
      )
    }).pipe(Effect.scoped)
  )

  it.effect(
    "a prompt with more than 1,000 slots is listed without arguments, and getting the prompt fails",
    () =>
      Effect.gen(function* () {
        const makeSlots = (count: number) => Array.from({ length: count }, (_, n) => `{{s${n}}}`).join("")
        const { catalog } = yield* makeCatalog([
          prompt({ title: "All", current_content: makeSlots(1_000), updated_at: at(3) }),
          prompt({ title: "More", current_content: makeSlots(1_001), updated_at: at(2) }),
          prompt({ title: "Most", current_content: makeSlots(200_000), updated_at: at(1) })
        ])
        assert.deepStrictEqual(
          (yield* catalog.list(undefined)).prompts.map(({ name, slots }) => [name, slots.length]),
          [
            ["all", 1_000],
            ["more", 0],
            ["most", 0]
          ]
        )
        assert.strictEqual((yield* catalog.get("all")).slots.length, 1_000)
        for (const name of ["more", "most"]) {
          const error = yield* Effect.flip(catalog.get(name))
          assert.deepStrictEqual(
            [error.code, error.status, error.data],
            [422, 200, { code: "RESOLVED_TOO_LARGE" }]
          )
        }
      }).pipe(Effect.scoped)
  )

  it.effect(
    "after a change, the catalog reads the names of the n prompts of a large workspace again only when 0.1 ms × n have passed since the last reading",
    () =>
      Effect.gen(function* () {
        const prompts = Array.from({ length: 2_001 }, (_, n) => prompt({ title: `Title ${n}` }))
        const { catalog, store, feed, home } = yield* makeCatalog(prompts)
        yield* catalog.get("title-0")
        assert.deepStrictEqual(store.reads.splice(0), ["listAfter", "listAfter", "getSource"])
        feed.changes.invalidate(home.id)
        yield* catalog.get("title-0")
        assert.deepStrictEqual(store.reads.splice(0), ["getSource"])
        yield* Effect.promise(() => setTimeout(250))
        feed.changes.invalidate(home.id)
        yield* catalog.get("title-0")
        assert.deepStrictEqual(store.reads, ["listAfter", "listAfter", "getSource"])
      }).pipe(Effect.scoped)
  )
})
