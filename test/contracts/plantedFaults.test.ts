import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { describe, expect, it } from "vitest"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import { KeyStore } from "../../src/application/ports/KeyStore.ts"
import { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import { type ContractTest, makeKeyStoreTests, makePromptRepoTests } from "../../src/testing.ts"
import { loadWorkspace } from "./runContract.ts"

type Repo = PromptRepo["Service"]
type Keys = KeyStore["Service"]

/** Counts the tests of a suite that fail on the in-memory adapters with one service replaced. */
const countFailures = <I, S>(
  tests: ReadonlyArray<ContractTest<Layer.Success<typeof Memory.layer>>>,
  port: Context.Key<I, S>,
  plant: (service: S) => S
): Promise<number> =>
  Effect.gen(function* () {
    const services = yield* Layer.build(Layer.fresh(Memory.layer))
    const faulty = Context.add(services, port, plant(Context.getUnsafe(services, port)))
    const exits = yield* Effect.forEach(tests, ({ run }) =>
      Effect.exit(Effect.provideContext(run, faulty as typeof services))
    )
    return exits.filter(Exit.isFailure).length
  }).pipe(Effect.scoped, Effect.runPromise)

describe("the contract suite of PromptRepo fails for a store that", () => {
  it.each<[string, (repo: Repo) => Partial<Repo>]>([
    [
      "ignores the folder",
      (repo) => ({ list: (id, { folder_id: _, ...rest }, page) => repo.list(id, rest, page) })
    ],
    [
      "compares tags without case",
      (repo) => ({
        list: (id, filter, page) => repo.list(id, { ...filter, tag: filter.tag?.toLowerCase() }, page)
      })
    ],
    [
      "counts pages from 0",
      (repo) => ({ list: (id, filter, page) => repo.list(id, filter, { ...page, page: page.page + 1 }) })
    ],
    [
      "returns the number of items on the page as the total",
      (repo) => ({
        list: (...args) => Effect.map(repo.list(...args), ({ items }) => ({ items, total: items.length }))
      })
    ],
    [
      "returns fragments in the opposite order",
      (repo) => ({
        getSource: (...args) =>
          Effect.map(repo.getSource(...args), (source) => ({
            ...source,
            fragments: source.fragments.toReversed()
          }))
      })
    ],
    [
      "shows versions from before the cutoff",
      (repo) => ({ getVersion: (id, prompt, number) => repo.getVersion(id, prompt, number, undefined) })
    ]
  ])("%s", async (_, plant) => {
    const tests = makePromptRepoTests(loadWorkspace)
    expect(await countFailures(tests, PromptRepo, (repo) => ({ ...repo, ...plant(repo) }))).toBeGreaterThan(0)
  })
})

describe("the contract suite of KeyStore fails for a store that", () => {
  it.each<[string, (keys: Keys) => Keys["find"]]>([
    [
      "ignores revocations",
      (keys) => (hash) => Effect.map(keys.find(hash), (key) => ({ ...key, revoked: false }))
    ],
    [
      "ignores forced password resets",
      (keys) => (hash) => Effect.map(keys.find(hash), (key) => ({ ...key, owner_must_reset: false }))
    ],
    [
      "ignores the expiry",
      (keys) => (hash) => Effect.map(keys.find(hash), (key) => ({ ...key, expires_at: null }))
    ]
  ])("%s", async (_, plant) => {
    const tests = makeKeyStoreTests(loadWorkspace)
    expect(await countFailures(tests, KeyStore, (keys) => ({ ...keys, find: plant(keys) }))).toBeGreaterThan(
      0
    )
  })
})
