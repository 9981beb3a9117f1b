import * as assert from "node:assert/strict"
import * as Effect from "effect/Effect"
import { KeyStore } from "../application/ports/KeyStore.ts"
import { BillingStatus, Tier } from "../domain/Billing.ts"
import { type ApiKeyId, hashApiKey, InvalidKey, type KeyRecord } from "../domain/ApiKey.ts"
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
import { type ContractTest, ContractTests, type LoadWorkspace } from "./contract.ts"

const find = ({ stored }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(stored.key_hash))

/**
 * Makes the contract suite of `KeyStore`.
 *
 * @param load Stores a workspace with its users and keys, and updates the users and keys that are already stored.
 */
export const makeKeyStoreTests = <R>(load: LoadWorkspace<R>): ReadonlyArray<ContractTest<KeyStore | R>> => {
  const suite = new ContractTests<KeyStore | R>()
  suite.add("KeyStore.find returns a key in any state, with the state of its owner and its workspace", () =>
    Effect.gen(function* () {
      const { archive, keys } = sample({ tier: "team", billing_status: "over_limit" })
      yield* load(archive)
      const home: KeyRecord["workspace"] = {
        id: archive.workspace.id,
        tier: "team",
        billing_status: "over_limit"
      }
      const expected: Record<SampleKey, Omit<KeyRecord, "id">> = {
        active: { revoked: false, expires_at: null, owner_must_reset: false, workspace: home },
        second: { revoked: false, expires_at: null, owner_must_reset: false, workspace: home },
        revoked: { revoked: true, expires_at: null, owner_must_reset: false, workspace: home },
        ownerMustReset: { revoked: false, expires_at: null, owner_must_reset: true, workspace: home },
        revokedOwnerMustReset: { revoked: true, expires_at: null, owner_must_reset: true, workspace: home },
        legacy: { revoked: false, expires_at: null, owner_must_reset: false, workspace: null },
        legacyRevoked: { revoked: true, expires_at: null, owner_must_reset: false, workspace: null },
        legacyOwnerMustReset: { revoked: false, expires_at: null, owner_must_reset: true, workspace: null }
      }
      for (const [state, record] of Object.entries(expected)) {
        const key = keys[state as SampleKey]
        assert.deepStrictEqual(yield* find(key), { id: key.stored.id, ...record }, state)
      }
    })
  )

  suite.add("KeyStore.find returns a key by the hash of its plaintext", () =>
    Effect.gen(function* () {
      const { archive, keys } = sample()
      yield* load(archive)
      const store = yield* KeyStore
      const found = yield* store.find(hashApiKey(keys.active.plaintext))
      assert.strictEqual(found.id, keys.active.stored.id)
    })
  )

  suite.add("KeyStore.find returns every tier and every billing status of a workspace unchanged", () =>
    Effect.gen(function* () {
      for (const tier of Tier.literals) {
        for (const billing_status of BillingStatus.literals) {
          const home = workspace({ tier, billing_status })
          const owner = user()
          const own = key(home.id, owner)
          yield* load(archive({ workspace: home, users: [owner], api_keys: [own.stored] }))
          assert.deepStrictEqual(yield* find(own), {
            id: own.stored.id,
            revoked: false,
            expires_at: null,
            owner_must_reset: false,
            workspace: { id: home.id, tier, billing_status }
          })
        }
      }
    })
  )

  suite.add("KeyStore.find returns the workspace of the key when its owner has keys of two workspaces", () =>
    Effect.gen(function* () {
      const owner = user()
      const homes = [workspace({ tier: "solo" }), workspace({ tier: "team" })]
      const keys = homes.map(({ id }) => key(id, owner))
      for (const [index, home] of homes.entries()) {
        yield* load(archive({ workspace: home, users: [owner], api_keys: [keys[index]!.stored] }))
      }
      for (const [index, { id, tier, billing_status }] of homes.entries()) {
        assert.deepStrictEqual((yield* find(keys[index]!)).workspace, { id, tier, billing_status })
      }
    })
  )

  suite.add("KeyStore.find returns the expiry of a key, even after the key has expired", () =>
    Effect.gen(function* () {
      const [home, owner] = [workspace(), user()]
      for (const expires_at of [instant("2026-01-02T00:00:00.000Z"), instant("2126-01-02T00:00:00.000Z")]) {
        const own = key(home.id, owner, { expires_at })
        yield* load(archive({ workspace: home, users: [owner], api_keys: [own.stored] }))
        assert.deepStrictEqual((yield* find(own)).expires_at, expires_at)
      }
    })
  )

  suite.add("KeyStore.find fails with InvalidKey for a hash that no key has", () =>
    Effect.gen(function* () {
      const { archive } = sample()
      yield* load(archive)
      assert.deepStrictEqual(yield* Effect.flip(find(key(archive.workspace.id, user()))), InvalidKey)
    })
  )

  suite.add("KeyStore.find returns a revocation or a forced password reset once it is stored", () =>
    Effect.gen(function* () {
      const [home, owner] = [workspace(), user()]
      const [one, two] = [key(home.id, owner), key(home.id, owner)]
      const before = archive({
        workspace: home,
        users: [owner],
        api_keys: [one.stored, two.stored]
      })
      yield* load(before)
      const record = yield* find(one)
      assert.deepStrictEqual(record, {
        id: one.stored.id,
        revoked: false,
        expires_at: null,
        owner_must_reset: false,
        workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
      })

      const revoked = { ...one.stored, revoked_at: instant("2026-03-01T00:00:00.000Z") }
      yield* load({ ...before, api_keys: [revoked, two.stored] })
      assert.deepStrictEqual(yield* find(one), { ...record, revoked: true })
      assert.deepStrictEqual(yield* find(two), { ...record, id: two.stored.id })

      yield* load({ ...before, users: [{ ...owner, must_reset_password: true }] })
      assert.deepStrictEqual(yield* find(two), {
        ...record,
        id: two.stored.id,
        owner_must_reset: true
      })
    })
  )

  suite.add(
    "KeyStore.markUsed returns immediately, even for an unknown key, and does not change the result of find",
    () =>
      Effect.gen(function* () {
        const { archive, keys } = sample()
        yield* load(archive)
        const store = yield* KeyStore
        const before = yield* find(keys.active)
        for (const id of [keys.active.stored.id, keys.revoked.stored.id, newId<ApiKeyId>()]) {
          for (const now of [0, 1_767_225_600_000, 1_767_225_600_001]) {
            assert.strictEqual(store.markUsed(id, now), undefined)
          }
        }
        assert.deepStrictEqual(yield* find(keys.active), before)
      })
  )
  return suite.tests
}
