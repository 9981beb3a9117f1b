import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import {
  KeyNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../src/application/ports/WorkspaceStore.ts"
import { type ApiKeyId, InvalidKey, type UserId } from "../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archive, instant, key, newId, sample, user, workspace } from "../../support/archives.ts"
import { type ContractTests, addKey, findKey, load } from "./support.ts"

/** Tests the rules of `WorkspaceStore` for keys. */
export const testKeys = (it: ContractTests): void => {
  it.effect(
    "revokeKey revokes a key of any workspace or of none and keeps the time of the first revocation",
    () =>
      Effect.gen(function* () {
        const { revokeKey, keys } = yield* WorkspaceStore
        const { archive: own, keys: ownKeys } = sample()
        yield* load(own)
        const [first, later] = [instant("2026-04-01T00:00:00.000Z"), instant("2026-04-02T00:00:00.000Z")]
        const before = yield* keys(own.workspace.id)
        const active = before.find(({ id }) => id === ownKeys.active.stored.id)!
        const revoked = { ...active, revoked_at: first }
        assert.deepStrictEqual(yield* revokeKey(active.id, first), revoked)
        assert.deepStrictEqual(yield* revokeKey(active.id, later), revoked)
        assert.deepStrictEqual(
          yield* keys(own.workspace.id),
          before.map((info) => (info.id === active.id ? revoked : info))
        )
        assert.isTrue((yield* findKey(ownKeys.active)).revoked)
        assert.isFalse((yield* findKey(ownKeys.second)).revoked)
        assert.strictEqual((yield* revokeKey(ownKeys.legacy.stored.id, later)).revoked_at, later)
        assert.isTrue((yield* findKey(ownKeys.legacy)).revoked)
        assert.deepStrictEqual(yield* Effect.flip(revokeKey(newId<ApiKeyId>(), first)), KeyNotFound)
      })
  )

  it.effect("addKey adds a key of the user with the email, in any case", () =>
    Effect.gen(function* () {
      const home = workspace({ tier: "free" })
      const owner = user({ must_reset_password: true })
      yield* load(archive({ workspace: home, users: [owner] }))
      const added = key(home.id, owner)
      yield* addKey(home.id, owner.email.toUpperCase(), newId(), added)
      assert.deepStrictEqual(yield* findKey(added), {
        id: added.stored.id,
        revoked: false,
        owner_must_reset: true,
        workspace: { id: home.id, tier: "free", billing_status: "active" }
      })
    })
  )

  it.effect("addKey adds an unknown user once", () =>
    Effect.gen(function* () {
      const home = workspace()
      yield* load(archive({ workspace: home }))
      const owner = user()
      const [first, second] = [key(home.id, owner), key(home.id, owner)]
      yield* addKey(home.id, owner.email, owner.id, first)
      yield* addKey(home.id, owner.email.toUpperCase(), newId(), second)
      const records = Effect.forEach([first, second], findKey)
      const expected = (owner_must_reset: boolean) =>
        [first, second].map(({ stored }) => ({
          id: stored.id,
          revoked: false,
          owner_must_reset,
          workspace: { id: home.id, tier: home.tier, billing_status: home.billing_status }
        }))
      assert.deepStrictEqual(yield* records, expected(false))
      yield* load(archive({ users: [{ ...owner, must_reset_password: true }] }))
      assert.deepStrictEqual(yield* records, expected(true))
    })
  )

  it.effect("addKey adds neither the key nor the user if the workspace does not exist", () =>
    Effect.gen(function* () {
      const owner = user()
      const nowhere = newId<WorkspaceId>()
      const added = key(nowhere, owner)
      assert.deepStrictEqual(
        yield* Effect.flip(addKey(nowhere, owner.email, owner.id, added)),
        WorkspaceNotFound
      )
      assert.deepStrictEqual(yield* Effect.flip(findKey(added)), InvalidKey)
      yield* load(archive({ users: [{ ...owner, id: newId<UserId>() }] }))
    })
  )

  it.effect("addKey adds neither the key nor the user if the key exists", () =>
    Effect.gen(function* () {
      const { archive: own, keys } = sample()
      yield* load(own)
      const unchanged = yield* findKey(keys.active)
      const owner = user()
      const attempt = yield* Effect.exit(addKey(own.workspace.id, owner.email, owner.id, keys.active))
      assert.isTrue(Exit.hasDies(attempt))
      assert.deepStrictEqual(yield* findKey(keys.active), unchanged)
      yield* load(archive({ users: [{ ...owner, id: newId<UserId>() }] }))
    })
  )
}
