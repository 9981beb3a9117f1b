import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { KeyStore } from "../application/ports/KeyStore.ts"
import type { Archive } from "../application/transfer/Archive.ts"
import { type ApiKeyId, InvalidKey, type KeyRecord } from "../domain/ApiKey.ts"
import { BillingStatus, Tier } from "../domain/Billing.ts"
import { archive, instant, key, newId, user, workspace } from "./archives.ts"
import type { ContractTest, LoadWorkspace } from "./promptRepoTests.ts"

/** Asserts that each key of an archive is found, with the state of its owner and its workspace. */
const assertKeys = Effect.fnUntraced(function* ({ workspace, users, api_keys }: Archive) {
  const store = yield* KeyStore
  const { id, tier, billing_status } = workspace
  for (const { key_hash, created_by, workspace_id, revoked_at, ...stored } of api_keys) {
    const record: KeyRecord = {
      id: stored.id,
      revoked: revoked_at !== null,
      expires_at: stored.expires_at,
      owner_must_reset: users.some(({ id, must_reset_password }) => id === created_by && must_reset_password),
      workspace: workspace_id === null ? null : { id, tier, billing_status }
    }
    assert.deepStrictEqual(yield* store.find(key_hash), record)
  }
})

/** Returns a workspace with keys in every state. Some keys of the workspace's users have no workspace. */
const makeKeys = (): Archive => {
  const home = workspace({ tier: "team", billing_status: "over_limit" })
  const users = [user(), user({ must_reset_password: true })]
  const [past, future] = [instant("2026-01-02T00:00:00.000Z"), instant("2126-01-02T00:00:00.000Z")]
  const states = [{}, { revoked_at: past }, { expires_at: past }, { expires_at: future }]
  const keys = users.flatMap((owner) =>
    [home.id, null].flatMap((id) => states.map((state) => key(id, owner, state).stored))
  )
  return archive({ workspace: home, users, api_keys: keys })
}

/**
 * Makes the contract suite of `KeyStore`.
 *
 * @param load Stores a workspace with its users and keys, and updates the users and keys that are already stored.
 */
export const makeKeyStoreTests = <R>(load: LoadWorkspace<R>): ReadonlyArray<ContractTest<KeyStore | R>> => [
  {
    name: "KeyStore.find returns a key in any state, with the state of its owner and its workspace",
    run: Effect.gen(function* () {
      const stored = makeKeys()
      yield* load(stored)
      yield* assertKeys(stored)
    })
  },

  {
    name: "KeyStore.find returns the workspace of each key unchanged, even if one owner has keys of many workspaces",
    run: Effect.gen(function* () {
      const owner = user()
      const tenants = Tier.literals.flatMap((tier) =>
        BillingStatus.literals.map((billing_status) => {
          const home = workspace({ tier, billing_status })
          return archive({ workspace: home, users: [owner], api_keys: [key(home.id, owner).stored] })
        })
      )
      yield* Effect.forEach(tenants, load)
      yield* Effect.forEach(tenants, assertKeys)
    })
  },

  {
    name: "KeyStore.find fails with InvalidKey for a hash that no key has",
    run: Effect.gen(function* () {
      const store = yield* KeyStore
      const keys = makeKeys()
      yield* load(keys)
      const { stored } = key(keys.workspace.id, user())
      assert.deepStrictEqual(yield* Effect.flip(store.find(stored.key_hash)), InvalidKey)
    })
  },

  {
    name: "KeyStore.find returns the new state after a key is revoked or the owner of a key must reset the password",
    run: Effect.gen(function* () {
      const [home, owner] = [workspace(), user()]
      const [one, two] = [key(home.id, owner).stored, key(home.id, owner).stored]
      const before = archive({ workspace: home, users: [owner], api_keys: [one, two] })
      const revoked = {
        ...before,
        api_keys: [{ ...one, revoked_at: instant("2026-03-01T00:00:00.000Z") }, two]
      }
      const reset = { ...revoked, users: [{ ...owner, must_reset_password: true }] }
      for (const stored of [before, revoked, reset]) {
        yield* load(stored)
        yield* assertKeys(stored)
      }
    })
  },

  {
    name: "KeyStore.markUsed returns immediately, even for an unknown key, and does not change the result of find",
    run: Effect.gen(function* () {
      const stored = makeKeys()
      yield* load(stored)
      const store = yield* KeyStore
      for (const id of [...stored.api_keys.map(({ id }) => id), newId<ApiKeyId>()])
        for (const now of [0, 1_767_225_600_000, 1_767_225_600_001])
          assert.strictEqual(store.markUsed(id, now), undefined)
      yield* assertKeys(stored)
    })
  }
]
