import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { KeyStore } from "../application/ports/KeyStore.ts"
import { type ApiKeyId, hashApiKey, InvalidKey, type KeyRecord } from "../domain/ApiKey.ts"
import { BillingStatus, Tier } from "../domain/Billing.ts"
import type { Workspace } from "../domain/Workspace.ts"
import {
  archive,
  instant,
  type Key,
  key,
  newId,
  type SampleKey,
  sample,
  user,
  workspace
} from "./archives.ts"
import type { ContractTest, LoadWorkspace } from "./contract.ts"

const find = ({ plaintext }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(hashApiKey(plaintext)))

/** Returns the expected record of a key that can be used. */
const toRecord = ({ stored }: Key, { id, tier, billing_status }: Workspace): KeyRecord => ({
  id: stored.id,
  revoked: false,
  expires_at: null,
  owner_must_reset: false,
  workspace: { id, tier, billing_status }
})

/**
 * Makes the contract suite of `KeyStore`.
 *
 * @param load Stores a workspace with its users and keys, and updates the users and keys that are already stored.
 */
export const makeKeyStoreTests = <R>(load: LoadWorkspace<R>): ReadonlyArray<ContractTest<KeyStore | R>> => [
  {
    name: "KeyStore.find returns a key in any state, with the state of its owner and its workspace",
    run: Effect.gen(function* () {
      const { archive, keys } = sample({ tier: "team", billing_status: "over_limit" })
      yield* load(archive)
      const expected: Record<SampleKey, Partial<KeyRecord>> = {
        active: {},
        second: {},
        revoked: { revoked: true },
        ownerMustReset: { owner_must_reset: true },
        revokedOwnerMustReset: { revoked: true, owner_must_reset: true },
        legacy: { workspace: null },
        legacyRevoked: { revoked: true, workspace: null },
        legacyOwnerMustReset: { owner_must_reset: true, workspace: null }
      }
      for (const [state, fields] of Object.entries(expected)) {
        const key = keys[state as SampleKey]
        const record = { ...toRecord(key, archive.workspace), ...fields }
        assert.deepStrictEqual(yield* find(key), record, state)
      }
    })
  },

  {
    name: "KeyStore.find returns the workspace of each key unchanged, even if one owner has keys of many workspaces",
    run: Effect.gen(function* () {
      const owner = user()
      const tenants = Tier.literals.flatMap((tier) =>
        BillingStatus.literals.map((billing_status) => {
          const home = workspace({ tier, billing_status })
          return { home, own: key(home.id, owner) }
        })
      )
      for (const { home, own } of tenants)
        yield* load(archive({ workspace: home, users: [owner], api_keys: [own.stored] }))
      for (const { home, own } of tenants) assert.deepStrictEqual(yield* find(own), toRecord(own, home))
    })
  },

  {
    name: "KeyStore.find returns the expiry of a key, even after the key has expired",
    run: Effect.gen(function* () {
      const [home, owner] = [workspace(), user()]
      for (const expires_at of [instant("2026-01-02T00:00:00.000Z"), instant("2126-01-02T00:00:00.000Z")]) {
        const own = key(home.id, owner, { expires_at })
        yield* load(archive({ workspace: home, users: [owner], api_keys: [own.stored] }))
        assert.deepStrictEqual((yield* find(own)).expires_at, expires_at)
      }
    })
  },

  {
    name: "KeyStore.find fails with InvalidKey for a hash that no key has",
    run: Effect.gen(function* () {
      const { archive } = sample()
      yield* load(archive)
      assert.deepStrictEqual(yield* Effect.flip(find(key(archive.workspace.id, user()))), InvalidKey)
    })
  },

  {
    name: "KeyStore.find returns a revocation or a forced password reset once it is stored",
    run: Effect.gen(function* () {
      const [home, owner] = [workspace(), user()]
      const [one, two] = [key(home.id, owner), key(home.id, owner)]
      const before = archive({ workspace: home, users: [owner], api_keys: [one.stored, two.stored] })
      yield* load(before)
      assert.deepStrictEqual(yield* find(one), toRecord(one, home))

      const revoked = { ...one.stored, revoked_at: instant("2026-03-01T00:00:00.000Z") }
      yield* load({ ...before, api_keys: [revoked, two.stored] })
      assert.deepStrictEqual(yield* find(one), { ...toRecord(one, home), revoked: true })
      assert.deepStrictEqual(yield* find(two), toRecord(two, home))

      yield* load({ ...before, users: [{ ...owner, must_reset_password: true }] })
      assert.deepStrictEqual(yield* find(two), { ...toRecord(two, home), owner_must_reset: true })
    })
  },

  {
    name: "KeyStore.markUsed returns immediately, even for an unknown key, and does not change the result of find",
    run: Effect.gen(function* () {
      const { archive, keys } = sample()
      yield* load(archive)
      const store = yield* KeyStore
      for (const id of [keys.active.stored.id, keys.revoked.stored.id, newId<ApiKeyId>()])
        for (const now of [0, 1_767_225_600_000, 1_767_225_600_001])
          assert.strictEqual(store.markUsed(id, now), undefined)
      assert.deepStrictEqual(yield* find(keys.active), toRecord(keys.active, archive.workspace))
    })
  }
]
