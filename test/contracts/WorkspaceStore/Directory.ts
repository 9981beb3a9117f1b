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
  archive,
  compareIds,
  exportArchive,
  folder,
  instant,
  key,
  loadArchive,
  newId,
  sample,
  tag,
  user,
  workspace
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { assertReads, type ContractTests, findKey } from "./support.ts"

/** Tests the rules of `WorkspaceStore` for lists, and for the settings of workspaces and users. */
export const testDirectory = (it: ContractTests): void => {
  const test = makeTest(it.effect)
  test("addWorkspace adds an empty workspace only if its id is new, and the list of workspaces has each workspace once, ordered by id", function* () {
    const { workspaces, addWorkspace } = yield* WorkspaceStore
    const [imported, added] = [archive(), workspace({ name: "Added", tier: "free" })]
    for (const _ of [1, 2]) yield* loadArchive(imported)
    yield* addWorkspace(added)
    yield* assertReads(archive({ workspace: added }))
    assert.isTrue(Exit.hasDies(yield* Effect.exit(addWorkspace(added))))
    const listed = yield* workspaces
    assert.deepStrictEqual(listed, listed.toSorted(compareIds))
    // Other tests use the same database, so the database can contain more workspaces.
    assert.deepStrictEqual(
      listed.filter(({ id }) => [imported.workspace.id, added.id].includes(id)),
      [imported.workspace, added].sort(compareIds)
    )
  })

  test("the lists of folders, tags, users and keys contain exactly the items of the workspace, ordered by name or id", function* () {
    const { folders, tags, users, keys, readContent } = yield* WorkspaceStore
    const names = ["B", "a", "z", "ß", "😀"]
    const own: ReturnType<typeof archive> = {
      ...sample().archive,
      folders: [...names, "a"].toReversed().map((name) => folder({ name })),
      tags: names.toReversed().map((name) => tag(name)),
      prompts: []
    }
    for (const each of [own, sample().archive]) yield* loadArchive(each)
    const home = own.workspace.id
    const byName = (a: { readonly name: string }, b: { readonly name: string }) =>
      names.indexOf(a.name) - names.indexOf(b.name)
    assert.deepStrictEqual(yield* folders(home), own.folders.toSorted(compareIds).toSorted(byName))
    assert.deepStrictEqual(yield* tags(home), own.tags.toSorted(byName))
    assert.deepStrictEqual(yield* users(home), own.users.toSorted(compareIds))
    const listed = own.api_keys
      .filter(({ workspace_id }) => workspace_id !== null)
      .map(({ created_by, key_hash: _, ...info }) => ({
        ...info,
        owner: own.users.find(({ id }) => id === created_by)!.email,
        last_used_at: null
      }))
    assert.deepStrictEqual(yield* keys(home), listed.toSorted(compareIds))
    const nowhere = newId<WorkspaceId>()
    const reads: ReadonlyArray<Effect.Effect<unknown, unknown, WorkspaceStore>> = [
      ...[users(nowhere), keys(nowhere), folders(nowhere), tags(nowhere)],
      ...[readContent(nowhere), exportArchive(nowhere)]
    ]
    for (const read of reads) assert.deepStrictEqual(yield* Effect.flip(read), WorkspaceNotFound)
  })

  test("deleteWorkspace deletes a workspace with its content and keys, but no users and no other workspaces", function* () {
    const { deleteWorkspace, workspaces, setUser } = yield* WorkspaceStore
    const [own, other] = [sample(), sample()]
    for (const each of [own, other]) yield* loadArchive(each.archive)
    const { workspace: home, users, prompts } = own.archive
    const deleted = { ...home, prompts: prompts.length, api_keys: 5 }
    assert.deepStrictEqual(yield* deleteWorkspace(home.id), deleted)
    assert.isFalse((yield* workspaces).some(({ id }) => id === home.id))
    assert.deepStrictEqual(yield* Effect.flip(deleteWorkspace(home.id)), WorkspaceNotFound)
    assert.deepStrictEqual(yield* Effect.flip(findKey(own.keys.active)), InvalidKey)
    assert.strictEqual((yield* findKey(own.keys.legacy)).id, own.keys.legacy.stored.id)
    assert.deepStrictEqual(yield* setUser(users[0]!.email, false), users[0]!)
    yield* assertReads(archive({ workspace: home }))
    yield* assertReads(other.archive)
    assert.isFalse((yield* findKey(other.keys.active)).revoked)
  })

  test("deleteUser deletes a user and the user's keys, but fails without withActiveKeys if a key is neither revoked nor expired", function* () {
    const { deleteUser, users } = yield* WorkspaceStore
    const [home, owner, other, idle] = [workspace(), user(), user(), user()]
    const expires_at = instant("2026-06-01T00:00:00.000Z")
    const revoked_at = instant("2026-02-01T00:00:00.000Z")
    const own = [
      key(home.id, owner),
      key(home.id, owner, { expires_at }),
      key(home.id, owner, { revoked_at }),
      key(null, owner, { revoked_at })
    ]
    const others = key(home.id, other, { revoked_at })
    const api_keys = [...own, others].map(({ stored }) => stored)
    yield* loadArchive(archive({ workspace: home, users: [owner, other, idle], api_keys }))
    const end = Date.parse(expires_at)
    const remove = (now: number, withActiveKeys: boolean) =>
      deleteUser(owner.email.toUpperCase(), { now, withActiveKeys })
    assert.deepStrictEqual(yield* Effect.flip(remove(end - 1, false)), new UserHasActiveKeys({ count: 2 }))
    assert.deepStrictEqual(yield* Effect.flip(remove(end, false)), new UserHasActiveKeys({ count: 1 }))
    assert.deepStrictEqual(yield* users(home.id), [owner, other].sort(compareIds))
    assert.deepStrictEqual(yield* remove(end, true), { ...owner, api_keys: 4 })
    for (const each of own) assert.deepStrictEqual(yield* Effect.flip(findKey(each)), InvalidKey)
    assert.deepStrictEqual(yield* users(home.id), [other])
    assert.deepStrictEqual(yield* Effect.flip(remove(end, true)), UserNotFound)
    for (const [deleted, api_keys] of [
      [other, 1],
      [idle, 0]
    ] as const) {
      const options = { now: end, withActiveKeys: false }
      assert.deepStrictEqual(yield* deleteUser(deleted.email, options), { ...deleted, api_keys })
    }
  })
}
