import { assert, it } from "@effect/vitest"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { KeyStore } from "../../../../src/application/ports/KeyStore.ts"
import { archive, key, user, workspace } from "../../../support/archives.ts"
import { makeTest } from "../../../support/makeTest.ts"

makeTest(it.effect, Memory.layer)(
  "a store keeps keys that a later archive lacks, and a password reset applies to the keys of all workspaces",
  function* () {
    const store = yield* KeyStore
    const [home, other, owner] = [workspace(), workspace(), user()]
    const { stored } = key(home.id, owner)
    yield* Memory.storeArchive(archive({ workspace: home, users: [owner], api_keys: [stored] }))
    yield* Memory.storeArchive(archive({ workspace: home }))
    const { id, tier, billing_status } = home
    const before = yield* store.find(stored.key_hash)
    assert.deepStrictEqual(before.workspace, { id, tier, billing_status })
    assert.isFalse(before.owner_must_reset)
    yield* Memory.storeArchive(
      archive({ workspace: other, users: [{ ...owner, must_reset_password: true }] })
    )
    assert.isTrue((yield* store.find(stored.key_hash)).owner_must_reset)
  }
)
