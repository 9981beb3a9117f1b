import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { KeyNotFound } from "../../../../../src/application/ports/WorkspaceStore.ts"
import { archive, instant, key, makeTenant, newId } from "../../../../support/archives.ts"
import { writeDuring } from "../../../../support/database/locks.ts"
import { openStoreAndClient } from "../../../../support/database/workspaceStore.ts"

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
type Setting = Effect.Success<typeof makeSetting>

const withSetting = <E>(test: (setting: Setting) => Effect.Effect<void, E, Scope.Scope>) =>
  Effect.scoped(Effect.flatMap(makeSetting, test))

/** Returns a new key of the setting's workspace, without the fields that the store adds. */
const makeNewKey = ({ home, owner }: Setting) => {
  const { workspace_id: _, created_by: __, revoked_at: ___, ...newKey } = key(home.id, owner).stored
  return newKey
}

describe("administration and concurrent writers", () => {
  it.live("addKey adds the user again if another transaction deletes the user at the same time", () =>
    withSetting(
      Effect.fnUntraced(function* (setting) {
        const { store, other, home, owner } = setting
        const newUserId = newId<typeof owner.id>()
        const added = makeNewKey(setting)
        const result = yield* writeDuring(
          other,
          [
            ["delete from api_keys where created_by = $1", [owner.id]],
            ["delete from users where id = $1", [owner.id]]
          ],
          store.addKey(home.id, { email: owner.email, newUserId }, added)
        )
        assert.deepStrictEqual(result, Result.void)
        assert.deepStrictEqual(
          (yield* store.keys(home.id)).map(({ id, owner }) => ({ id, owner })),
          [{ id: added.id, owner: owner.email }]
        )
        assert.deepStrictEqual(yield* store.users(home.id), [{ ...owner, id: newUserId }])
      })
    )
  )

  it.live.each(["workspace", "user"] as const)(
    "rotateKey fails with KeyNotFound if another transaction deletes the key's %s at the same time",
    (parent) =>
      withSetting(
        Effect.fnUntraced(function* (setting) {
          const { store, other, home, owner, own } = setting
          const { name: _, ...replacement } = makeNewKey(setting)
          const deletions =
            parent === "workspace"
              ? [["delete from workspaces where id = $1", [home.id]] as const]
              : [
                  ["select from users where id = $1 for update", [owner.id]] as const,
                  ["delete from api_keys where created_by = $1", [owner.id]] as const,
                  ["delete from users where id = $1", [owner.id]] as const
                ]
          const result = yield* writeDuring(
            other,
            deletions,
            store.rotateKey(own.stored.id, replacement, late)
          )
          assert.deepStrictEqual(result, Result.fail(KeyNotFound))
        })
      )
  )

  it.live("concurrent administrative changes fail only with expected errors", () =>
    withSetting(
      Effect.fnUntraced(function* (setting) {
        const { store, home, owner } = setting
        const original = archive({
          workspace: home,
          users: [owner],
          api_keys: Array.from({ length: 5 }, () => key(home.id, owner).stored)
        })
        yield* store.importWorkspace(original)
        const round = Effect.gen(function* () {
          const changes: ReadonlyArray<Effect.Effect<unknown, { readonly _tag: string }>> = [
            store.importWorkspace(original),
            store.deleteWorkspace(home.id),
            store.deleteUser(owner.email, { now: Date.now(), withActiveKeys: true }),
            store.addKey(home.id, { email: owner.email, newUserId: newId() }, makeNewKey(setting)),
            store.setUser(owner.email, true),
            store.setWorkspace(home.id, { tier: "team" }),
            ...original.api_keys.flatMap(({ id }) => {
              const { name: _, ...replacement } = makeNewKey(setting)
              return [
                store.rotateKey(id, replacement, late),
                store.revokeKey(id, instant("2026-01-01T00:00:00.000Z"))
              ]
            })
          ]
          const exits = yield* Effect.forEach(
            changes.toSorted(() => Math.random() - 0.5),
            Effect.exit,
            { concurrency: "unbounded" }
          )
          for (const exit of exits) {
            if (Exit.isSuccess(exit)) continue
            const error = yield* Effect.flip(exit)
            assert.include(
              ["WorkspaceNotFound", "UserNotFound", "KeyEnded", "KeyNotFound", "InvalidContent"],
              error._tag
            )
          }
        })
        yield* Effect.repeat(round, { times: 20 })
      })
    )
  )
})
