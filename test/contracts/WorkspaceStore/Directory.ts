import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import {
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../src/application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { archive, compareIds, key, newId, sample, user, workspace } from "../../support/archives.ts"
import { type ContractTests, assertReads, findKey, load } from "./support.ts"

/** Tests the rules of `WorkspaceStore` for lists, and for the settings of workspaces and users. */
export const testDirectory = (it: ContractTests): void => {
  it.effect("workspaces lists every workspace once, ordered by id", () =>
    Effect.gen(function* () {
      const { workspaces, addWorkspace } = yield* WorkspaceStore
      const [imported, added] = [archive(), workspace({ name: "Added", tier: "free" })]
      yield* load(imported)
      yield* load(imported)
      yield* addWorkspace(added)
      const listed = yield* workspaces
      const ids = listed.map(({ id }) => id)
      assert.deepStrictEqual(ids, ids.toSorted())
      // Other tests may use the same database.
      assert.deepStrictEqual(
        listed.filter(({ id }) => [imported.workspace.id, added.id].includes(id)),
        [imported.workspace, added].sort(compareIds)
      )
    })
  )

  it.effect("addWorkspace adds an empty workspace and dies if the id exists", () =>
    Effect.gen(function* () {
      const { addWorkspace } = yield* WorkspaceStore
      const added = workspace()
      yield* addWorkspace(added)
      yield* assertReads(archive({ workspace: added }))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(addWorkspace(added))))
    })
  )

  it.effect("setWorkspace changes only the given fields and leaves the content unchanged", () =>
    Effect.gen(function* () {
      const { setWorkspace } = yield* WorkspaceStore
      const { archive: own, keys } = sample({ tier: "free" })
      const home = own.workspace
      yield* load(own)
      const set = (changes: Parameters<typeof setWorkspace>[1]) => setWorkspace(home.id, changes)
      assert.deepStrictEqual(yield* set({}), home)
      assert.deepStrictEqual(yield* set({ tier: "team" }), { ...home, tier: "team" })
      const changed = { ...home, tier: "team", billing_status: "disputed" } as const
      assert.deepStrictEqual(yield* set({ billing_status: "disputed" }), changed)
      assert.deepStrictEqual((yield* findKey(keys.active)).workspace, {
        id: home.id,
        tier: "team",
        billing_status: "disputed"
      })
      yield* assertReads(own)
      assert.deepStrictEqual(yield* set({ tier: "free", billing_status: "active" }), home)
      assert.deepStrictEqual(
        yield* Effect.flip(setWorkspace(newId<WorkspaceId>(), { tier: "team" })),
        WorkspaceNotFound
      )
    })
  )

  it.effect(
    "users lists the owners of a workspace's keys once, and keys lists its keys, both ordered by id",
    () =>
      Effect.gen(function* () {
        const { users, keys } = yield* WorkspaceStore
        const { archive: own } = sample()
        yield* load(own)
        yield* load(sample().archive)
        const listed = own.api_keys
          .filter(({ workspace_id }) => workspace_id !== null)
          .map(({ workspace_id: _, created_by, key_hash: __, ...info }) => ({
            ...info,
            owner: own.users.find(({ id }) => id === created_by)!.email,
            last_used_at: null
          }))
          .sort(compareIds)
        assert.strictEqual(listed.length, 5)
        assert.deepStrictEqual(yield* keys(own.workspace.id), listed)
        assert.deepStrictEqual(yield* users(own.workspace.id), own.users.toSorted(compareIds))
        const empty = workspace()
        yield* load(archive({ workspace: empty, users: [user()] }))
        assert.deepStrictEqual(yield* users(empty.id), [])
        assert.deepStrictEqual(yield* keys(empty.id), [])
        const nowhere = newId<WorkspaceId>()
        assert.deepStrictEqual(yield* Effect.flip(users(nowhere)), WorkspaceNotFound)
        assert.deepStrictEqual(yield* Effect.flip(keys(nowhere)), WorkspaceNotFound)
      })
  )

  it.effect("setUser forces a reset or lifts it, for an email in any case", () =>
    Effect.gen(function* () {
      const { setUser } = yield* WorkspaceStore
      const [home, owner, other] = [workspace(), user(), user()]
      const [own, others] = [key(home.id, owner), key(home.id, other)]
      yield* load(archive({ workspace: home, users: [owner, other], api_keys: [own.stored, others.stored] }))
      const forced = { ...owner, must_reset_password: true }
      for (const [on, expected] of [
        [true, forced],
        [true, forced],
        [false, owner]
      ] as const) {
        assert.deepStrictEqual(yield* setUser(owner.email.toUpperCase(), on), expected)
        assert.strictEqual((yield* findKey(own)).owner_must_reset, on)
        assert.isFalse((yield* findKey(others)).owner_must_reset)
      }
      assert.deepStrictEqual(yield* Effect.flip(setUser(user().email, true)), UserNotFound)
    })
  )
}
