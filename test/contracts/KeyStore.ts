import { assert, layer as suite } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Archive } from "../../src/application/formats/Archive.ts"
import { KeyStore } from "../../src/application/ports/KeyStore.ts"
import type { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { BillingStatus, Tier } from "../../src/domain/Billing.ts"
import { type ApiKeyId, hashApiKey, InvalidKey, type KeyRecord } from "../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import {
  archive,
  instant,
  type Key,
  key,
  newId,
  type SampleKey,
  sample,
  user,
  workspace,
  toPartStream
} from "../support/archives.ts"

const importArchive = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importWorkspace(toPartStream(archive)))

const find = ({ stored }: Key) => Effect.flatMap(KeyStore, (keys) => keys.find(stored.key_hash))

/** Tests what every adapter of `KeyStore` must do. */
export const testKeyStore = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`KeyStore: ${name}`, (it) => {
    it.effect("find returns a key in every state, with the state of its owner and of its workspace", () =>
      Effect.gen(function* () {
        const { archive, keys } = sample({ tier: "team", billing_status: "over_limit" })
        yield* importArchive(archive)
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

    it.effect("find returns a key by the hash of its plaintext", () =>
      Effect.gen(function* () {
        const { archive, keys } = sample()
        yield* importArchive(archive)
        const store = yield* KeyStore
        const found = yield* store.find(hashApiKey(keys.active.plaintext))
        assert.strictEqual(found.id, keys.active.stored.id)
      })
    )

    it.effect("find returns the workspace's tier and billing status, for every tier and every status", () =>
      Effect.gen(function* () {
        for (const tier of Tier.literals) {
          for (const billing_status of BillingStatus.literals) {
            const home = workspace({ tier, billing_status })
            const owner = user()
            const own = key(home.id, owner)
            yield* importArchive(archive({ workspace: home, users: [owner], api_keys: [own.stored] }))
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

    it.effect("find returns each key's own workspace when one user has keys of two workspaces", () =>
      Effect.gen(function* () {
        const owner = user()
        const homes = [workspace({ tier: "solo" }), workspace({ tier: "team" })]
        const keys = homes.map(({ id }) => key(id, owner))
        for (const [index, home] of homes.entries()) {
          yield* importArchive(archive({ workspace: home, users: [owner], api_keys: [keys[index]!.stored] }))
        }
        for (const [index, { id, tier, billing_status }] of homes.entries()) {
          assert.deepStrictEqual((yield* find(keys[index]!)).workspace, { id, tier, billing_status })
        }
      })
    )

    it.effect("find fails with InvalidKey for a hash that no key has", () =>
      Effect.gen(function* () {
        const { archive } = sample()
        yield* importArchive(archive)
        assert.deepStrictEqual(yield* Effect.flip(find(key(archive.workspace.id, user()))), InvalidKey)
      })
    )

    it.effect("find returns a revocation and a forced password reset as soon as they are stored", () =>
      Effect.gen(function* () {
        const [home, owner] = [workspace(), user()]
        const [one, two] = [key(home.id, owner), key(home.id, owner)]
        const before = archive({
          workspace: home,
          users: [owner],
          api_keys: [one.stored, two.stored]
        })
        yield* importArchive(before)
        const record = yield* find(one)
        assert.deepStrictEqual(record, {
          id: one.stored.id,
          revoked: false,
          expires_at: null,
          owner_must_reset: false,
          workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
        })

        const revoked = { ...one.stored, revoked_at: instant("2026-03-01T00:00:00.000Z") }
        yield* importArchive({ ...before, api_keys: [revoked, two.stored] })
        assert.deepStrictEqual(yield* find(one), { ...record, revoked: true })
        assert.deepStrictEqual(yield* find(two), { ...record, id: two.stored.id })

        yield* importArchive({ ...before, users: [{ ...owner, must_reset_password: true }] })
        assert.deepStrictEqual(yield* find(two), {
          ...record,
          id: two.stored.id,
          owner_must_reset: true
        })
      })
    )

    it.effect(
      "markUsed returns immediately for any key, even an unknown one, and does not change what find returns",
      () =>
        Effect.gen(function* () {
          const { archive, keys } = sample()
          yield* importArchive(archive)
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

    it.effect("find returns a key right after addKey", () =>
      Effect.gen(function* () {
        const home = workspace({ tier: "free", billing_status: "disputed" })
        yield* importArchive(archive({ workspace: home }))
        const owner = user()
        const added = key(home.id, owner)
        const { workspace_id: _, created_by: __, revoked_at: ___, ...newKey } = added.stored
        const workspaces = yield* WorkspaceStore
        yield* workspaces.addKey(home.id, { email: owner.email, newUserId: owner.id }, newKey)
        assert.deepStrictEqual(yield* find(added), {
          id: added.stored.id,
          revoked: false,
          expires_at: null,
          owner_must_reset: false,
          workspace: { id: home.id as WorkspaceId, tier: "free", billing_status: "disputed" }
        })
      })
    )
  })
