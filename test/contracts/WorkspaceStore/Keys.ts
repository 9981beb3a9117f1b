import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { KeyNotFound, WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import { type ApiKeyId } from "../../../src/domain/ApiKey.ts"
import {
  archive,
  compareIds,
  instant,
  key,
  loadArchive,
  makeTenant,
  newId,
  sample,
  user,
  workspace
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { addKey, type ContractTests, findKey, makeRecord, toReplacement } from "./support.ts"

const early = instant("2098-01-01T00:00:00.000Z")
const late = instant("2099-01-01T00:00:00.000Z")
/** The issue time of the new key, 90 days after the issue of the other keys. */
const issuedAt = instant("2026-04-01T00:00:00.000Z")
/** The expiry of a new key with the lifetime of a key that expires at `early`: 90 days after `early`. */
const issuedAndEarly = instant("2098-04-01T00:00:00.000Z")

export const testKeys = (it: ContractTests): void => {
  const test = makeTest(it.effect)
  test("revokeKey revokes a key with or without a workspace, and keeps the time of the first revocation", function* () {
    const { revokeKey, keys } = yield* WorkspaceStore
    const { archive: own, keys: ownKeys } = sample()
    yield* loadArchive(own)
    const before = yield* keys(own.workspace.id)
    const active = before.find(({ id }) => id === ownKeys.active.stored.id)!
    const revoked = { ...active, revoked_at: issuedAt }
    assert.deepStrictEqual(yield* revokeKey(active.id, issuedAt), revoked)
    assert.deepStrictEqual(yield* revokeKey(active.id, late), revoked)
    assert.deepStrictEqual(
      yield* keys(own.workspace.id),
      before.map((info) => (info.id === active.id ? revoked : info))
    )
    assert.strictEqual((yield* revokeKey(ownKeys.legacy.stored.id, late)).revoked_at, late)
    for (const each of [ownKeys.active, ownKeys.legacy]) assert.isTrue((yield* findKey(each)).revoked)
    assert.isFalse((yield* findKey(ownKeys.second)).revoked)
    assert.deepStrictEqual(yield* Effect.flip(revokeKey(newId<ApiKeyId>(), late)), KeyNotFound)
  })

  const givenExpiry = { oldExpiry: late, expires_at: late, newExpiry: late }
  const sameLifetime = { oldExpiry: early, expires_at: undefined, newExpiry: issuedAndEarly }
  const expiry = { expires_at: early, revoked_at: null }
  const revocation = { expires_at: late, revoked_at: issuedAt }
  for (const { how, endsAt, end, oldExpiry, expires_at, newExpiry } of [
    { how: "ends the old key at the given time", endsAt: early, end: expiry, ...givenExpiry },
    { how: "revokes the old key if the time has come", endsAt: issuedAt, end: revocation, ...givenExpiry },
    { how: "gives the new key the lifetime of the old key", endsAt: late, end: expiry, ...sameLifetime }
  ])
    test(`rotateKey adds a key with the workspace, owner and name of an old key, and ${how}`, function* () {
      const { rotateKey, keys, users } = yield* WorkspaceStore
      const fields = { name: "Production", expires_at: oldExpiry }
      const { home, owner, key: old, archive } = makeTenant({ key: fields })
      yield* loadArchive(archive)
      const [listed] = yield* keys(home.id)
      const added = key(home.id, owner, { created_at: issuedAt, expires_at: newExpiry })
      const replaced = { ...listed!, ...end, name: "Production (replaced)" }
      assert.deepStrictEqual(
        yield* rotateKey(old.stored.id, { ...toReplacement(added), expires_at }, endsAt),
        { replaced, expires_at: newExpiry }
      )
      const { created_by: _, key_hash: __, ...info } = added.stored
      const newKey = { ...info, name: "Production", owner: owner.email, last_used_at: null }
      assert.deepStrictEqual(yield* keys(home.id), [replaced, newKey].sort(compareIds))
      assert.deepStrictEqual(yield* users(home.id), [owner])
      assert.deepStrictEqual(yield* findKey(added), makeRecord(added, home))
      const ended = { revoked: end.revoked_at !== null, expires_at: end.expires_at }
      assert.deepStrictEqual(yield* findKey(old), makeRecord(old, home, ended))
    })

  test("addKey adds a key for the user whose email differs at most in letter case, and adds a user for an unknown email", function* () {
    const [home, owner] = [workspace({ tier: "free" }), user()]
    yield* loadArchive(archive({ workspace: home }))
    const [first, second] = [key(home.id, owner), key(home.id, owner, { expires_at: late })]
    yield* addKey(home.id, owner.email, owner.id, first)
    yield* loadArchive(archive({ users: [{ ...owner, must_reset_password: true }] }))
    yield* addKey(home.id, owner.email.toUpperCase(), newId(), second)
    for (const each of [first, second])
      assert.deepStrictEqual(yield* findKey(each), makeRecord(each, home, { owner_must_reset: true }))
  })
}
