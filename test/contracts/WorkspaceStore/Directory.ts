import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import {
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../src/application/ports/WorkspaceStore.ts"
import { InvalidKey } from "../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  loadArchive,
  archive,
  compareIds,
  exportArchive,
  folder,
  instant,
  key,
  newId,
  sample,
  tag,
  user,
  workspace
} from "../../support/archives.ts"
import { type ContractTests, assertReads, findKey } from "./support.ts"

/** Tests the rules of `WorkspaceStore` for lists, and for the settings of workspaces and users. */
export const testDirectory = (it: ContractTests): void => {
  it.effect(
    "addWorkspace adds an empty workspace with a new id, and the list has every workspace once, ordered by id",
    () =>
      Effect.gen(function* () {
        const { workspaces, addWorkspace } = yield* WorkspaceStore
        const [imported, added] = [archive(), workspace({ name: "Added", tier: "free" })]
        yield* loadArchive(imported)
        yield* loadArchive(imported)
        yield* addWorkspace(added)
        yield* assertReads(archive({ workspace: added }))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(addWorkspace(added))))
        const listed = yield* workspaces
        const ids = listed.map(({ id }) => id)
        assert.deepStrictEqual(ids, ids.toSorted())
        // Other tests use the same database, so it can contain more workspaces.
        assert.deepStrictEqual(
          listed.filter(({ id }) => [imported.workspace.id, added.id].includes(id)),
          [imported.workspace, added].sort(compareIds)
        )
      })
  )

  it.effect(
    "the methods folders and tags return only items of the workspace, ordered by the code points of their names",
    () =>
      Effect.gen(function* () {
        const { folders, tags } = yield* WorkspaceStore
        const names = ["B", "a", "z", "ß", "😀"]
        const own = archive({
          folders: [...names, "a"].toReversed().map((name) => folder({ name })),
          tags: names.toReversed().map((name) => tag(name))
        })
        yield* loadArchive(own)
        yield* loadArchive(archive({ folders: [folder()], tags: [tag("other")] }))
        const byName = (a: { readonly name: string }, b: { readonly name: string }) =>
          names.indexOf(a.name) - names.indexOf(b.name)
        assert.deepStrictEqual(
          yield* folders(own.workspace.id),
          own.folders.toSorted(compareIds).toSorted(byName)
        )
        assert.deepStrictEqual(yield* tags(own.workspace.id), own.tags.toSorted(byName))
      })
  )

  it.effect("setWorkspace changes only the given fields and leaves the content unchanged", () =>
    Effect.gen(function* () {
      const { setWorkspace } = yield* WorkspaceStore
      const { archive: own, keys } = sample({ tier: "free" })
      const home = own.workspace
      yield* loadArchive(own)
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
      const renamed = { ...changed, name: "Renamed" }
      assert.deepStrictEqual(yield* set({ name: "Renamed" }), renamed)
      assert.deepStrictEqual(yield* set({ name: home.name, tier: "free", billing_status: "active" }), home)
      assert.deepStrictEqual(
        yield* Effect.flip(setWorkspace(newId<WorkspaceId>(), { tier: "team" })),
        WorkspaceNotFound
      )
    })
  )

  it.effect(
    "the method users returns each owner of a workspace's keys once, and the method keys returns the keys, both ordered by id; every list fails for an unknown workspace",
    () =>
      Effect.gen(function* () {
        const { users, keys } = yield* WorkspaceStore
        const { archive: own } = sample()
        yield* loadArchive(own)
        yield* loadArchive(sample().archive)
        const listed = own.api_keys
          .filter(({ workspace_id }) => workspace_id !== null)
          .map(({ created_by, key_hash: _, ...info }) => ({
            ...info,
            owner: own.users.find(({ id }) => id === created_by)!.email,
            last_used_at: null
          }))
          .sort(compareIds)
        assert.strictEqual(listed.length, 5)
        assert.deepStrictEqual(yield* keys(own.workspace.id), listed)
        assert.deepStrictEqual(yield* users(own.workspace.id), own.users.toSorted(compareIds))
        const empty = workspace()
        yield* loadArchive(archive({ workspace: empty, users: [user()] }))
        assert.deepStrictEqual(yield* users(empty.id), [])
        assert.deepStrictEqual(yield* keys(empty.id), [])
        const { folders, tags, readContent } = yield* WorkspaceStore
        const nowhere = newId<WorkspaceId>()
        const reads: ReadonlyArray<Effect.Effect<unknown, unknown, WorkspaceStore>> = [
          ...[users(nowhere), keys(nowhere), folders(nowhere), tags(nowhere)],
          ...[readContent(nowhere), exportArchive(nowhere)]
        ]
        for (const read of reads) assert.deepStrictEqual(yield* Effect.flip(read), WorkspaceNotFound)
      })
  )

  it.effect(
    "deleteWorkspace deletes a workspace with its content and keys, but no users and no other workspaces",
    () =>
      Effect.gen(function* () {
        const { deleteWorkspace, workspaces, keys, setUser } = yield* WorkspaceStore
        const [own, other] = [sample(), sample()]
        yield* loadArchive(own.archive)
        yield* loadArchive(other.archive)
        const { workspace: home, users, prompts } = own.archive
        const othersKeys = yield* keys(other.archive.workspace.id)
        assert.deepStrictEqual(yield* deleteWorkspace(home.id), {
          ...home,
          prompts: prompts.length,
          api_keys: 5
        })
        assert.isFalse((yield* workspaces).some(({ id }) => id === home.id))
        assert.deepStrictEqual(yield* Effect.flip(keys(home.id)), WorkspaceNotFound)
        assert.deepStrictEqual(yield* Effect.flip(deleteWorkspace(home.id)), WorkspaceNotFound)
        assert.deepStrictEqual(yield* Effect.flip(findKey(own.keys.active)), InvalidKey)
        assert.strictEqual((yield* findKey(own.keys.legacy)).id, own.keys.legacy.stored.id)
        assert.deepStrictEqual(yield* setUser(users[0]!.email, false), users[0]!)
        yield* assertReads(archive({ workspace: home }))
        yield* assertReads(other.archive)
        assert.deepStrictEqual(yield* keys(other.archive.workspace.id), othersKeys)
        yield* loadArchive(own.archive)
        yield* assertReads(own.archive)
      })
  )

  it.effect(
    "deleteUser deletes a user and the user's keys; without withActiveKeys, it fails if a key is neither revoked nor expired",
    () =>
      Effect.gen(function* () {
        const { deleteUser, users, keys } = yield* WorkspaceStore
        const [home, owner, other, idle] = [workspace(), user(), user(), user()]
        const expires_at = instant("2026-06-01T00:00:00.000Z")
        const revoked_at = instant("2026-02-01T00:00:00.000Z")
        const [active, expiring, revoked, legacy, others] = [
          key(home.id, owner),
          key(home.id, owner, { expires_at }),
          key(home.id, owner, { revoked_at }),
          key(null, owner, { revoked_at }),
          key(home.id, other, { revoked_at })
        ]
        const own = [active, expiring, revoked, legacy]
        yield* loadArchive(
          archive({
            workspace: home,
            users: [owner, other, idle],
            api_keys: [...own, others].map(({ stored }) => stored)
          })
        )
        const remove = (now: number, withActiveKeys: boolean) =>
          deleteUser(owner.email.toUpperCase(), { now, withActiveKeys })
        const end = Date.parse(expires_at)
        assert.deepStrictEqual(yield* Effect.flip(remove(end - 1, false)), UserHasActiveKeys(2))
        assert.deepStrictEqual(yield* Effect.flip(remove(end, false)), UserHasActiveKeys(1))
        assert.deepStrictEqual(yield* users(home.id), [owner, other].sort(compareIds))
        assert.deepStrictEqual(yield* remove(end, true), { ...owner, api_keys: 4 })
        for (const each of own) assert.deepStrictEqual(yield* Effect.flip(findKey(each)), InvalidKey)
        assert.deepStrictEqual(yield* users(home.id), [other])
        assert.deepStrictEqual(
          (yield* keys(home.id)).map(({ id }) => id),
          [others.stored.id]
        )
        assert.deepStrictEqual(yield* Effect.flip(remove(end, true)), UserNotFound)
        for (const [{ email }, api_keys] of [
          [other, 1],
          [idle, 0]
        ] as const)
          assert.strictEqual(
            (yield* deleteUser(email, { now: end, withActiveKeys: false })).api_keys,
            api_keys
          )
      })
  )

  it.effect("setUser forces or lifts a password reset, and ignores the letter case of the email", () =>
    Effect.gen(function* () {
      const { setUser } = yield* WorkspaceStore
      const [home, owner, other] = [workspace(), user(), user()]
      const [own, others] = [key(home.id, owner), key(home.id, other)]
      yield* loadArchive(
        archive({ workspace: home, users: [owner, other], api_keys: [own.stored, others.stored] })
      )
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
