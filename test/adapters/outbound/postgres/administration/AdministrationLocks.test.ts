import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { KeyNotFound } from "../../../../../src/application/ports/WorkspaceStore.ts"
import { toNewKey, toReplacement } from "../../../../contracts/WorkspaceStore/support.ts"
import { instant, key, makeTenant, newId } from "../../../../support/archives.ts"
import { holdLocks, waitForBlocked, writeDuring } from "../../../../support/database/locks.ts"
import { openStoreAndClient } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const late = instant("2099-01-01T00:00:00.000Z")

/**
 * Creates a database with a workspace and a key. Returns its store, and a separate SQL client that stands for another
 * program.
 */
const makeSetting = Effect.gen(function* () {
  const { store, other } = yield* openStoreAndClient
  const { home, owner, key: own, archive } = makeTenant()
  yield* store.importWorkspace(archive)
  return { store, other, home, owner, own }
})

const test = makeTest(it.live)

test("addKey adds the user again if another transaction deletes the user at the same time", function* () {
  const { store, other, home, owner } = yield* makeSetting
  const newUserId = newId<typeof owner.id>()
  const added = toNewKey(key(home.id, owner))
  const result = yield* writeDuring(
    other,
    [
      ["delete from api_keys where created_by = $1", [owner.id]],
      ["delete from users where id = $1", [owner.id]]
    ],
    store.addKey(home.id, { email: owner.email, newUserId }, added)
  )
  assert.deepStrictEqual(result, Result.void)
  const keys = (yield* store.keys(home.id)).map(({ id, owner }) => ({ id, owner }))
  assert.deepStrictEqual(keys, [{ id: added.id, owner: owner.email }])
  assert.deepStrictEqual(yield* store.users(home.id), [{ ...owner, id: newUserId }])
})

test("a password reset does not wait for a concurrent addKey for the same user", function* () {
  const { store, other, home, owner } = yield* makeSetting
  // addKey locks the user first. The last statement of addKey waits for the lock of this table.
  const commit = yield* holdLocks(other, ["lock table audit_events in share mode", []])
  const user = { email: owner.email, newUserId: newId<typeof owner.id>() }
  const adding = yield* Effect.forkScoped(store.addKey(home.id, user, toNewKey(key(home.id, owner))))
  yield* waitForBlocked(other)
  yield* other.unsafe("update users set must_reset_password = true where id = $1", [owner.id])
  yield* commit
  yield* Fiber.join(adding)
})

test("rotateKey fails with KeyNotFound if another transaction deletes the key's workspace or user at the same time", function* () {
  for (const parent of ["workspace", "user"]) {
    const { store, other, home, owner, own } = yield* makeSetting
    const deletions =
      parent === "workspace"
        ? [["delete from workspaces where id = $1", [home.id]] as const]
        : [
            ["select from users where id = $1 for update", [owner.id]] as const,
            ["delete from api_keys where created_by = $1", [owner.id]] as const,
            ["delete from users where id = $1", [owner.id]] as const
          ]
    const rotation = store.rotateKey(own.stored.id, toReplacement(key(home.id, owner)), late)
    assert.deepStrictEqual(yield* writeDuring(other, deletions, rotation), Result.fail(KeyNotFound), parent)
  }
})

test("deletions of a workspace and a user succeed while the service records uses of their key", function* () {
  for (const what of ["workspace", "user"]) {
    const { store, other, home, owner, own } = yield* makeSetting
    const useKey = ["update api_keys set last_used_at = now() where id = $1", [own.stored.id]] as const
    let commit = yield* holdLocks(other, useKey)
    const deletion: Effect.Effect<unknown, unknown> =
      what === "workspace"
        ? store.deleteWorkspace(home.id)
        : store.deleteUser(owner.email, { now: Date.now(), withActiveKeys: true })
    const deleted = yield* Effect.forkScoped(deletion)
    // A deletion that started over after each use would give up before the last round.
    for (let round = 0; round < 12; round++) {
      yield* Effect.raceFirst(waitForBlocked(other), Fiber.await(deleted))
      yield* commit
      commit = yield* holdLocks(other, useKey)
    }
    yield* commit
    yield* Fiber.join(deleted)
  }
})
