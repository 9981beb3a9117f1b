import { assert } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { InvalidKey, type KeyRecord } from "../../../src/domain/ApiKey.ts"
import { PromptFragment, PromptVersion, StoredKey, WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import {
  archive,
  archives,
  exportArchive,
  instant,
  key,
  loadArchive,
  makeTenant,
  sample,
  shareIds,
  tag,
  user
} from "../../support/archives.ts"
import { makeTest } from "../../support/makeTest.ts"
import { assertReads, type ContractTests, findKey, inExportOrder, makeRecord, oneOfEach } from "./support.ts"

const revoked_at = instant("2026-03-01T00:00:00.000Z")

/** Gives each tag, version and binding the id of its successor, so that rows swap names, numbers and parents. */
const swapIds = (archive: Archive): Archive => {
  const { tags, prompts } = archive
  const next = new Map<string, string>()
  for (const list of [
    tags,
    prompts.flatMap(({ versions }) => versions),
    prompts.flatMap(({ fragments }) => fragments)
  ])
    for (const [index, { id }] of list.entries()) next.set(id, list[(index + 1) % list.length]!.id)
  return JSON.parse(JSON.stringify(archive).replace(/[0-9a-f-]{36}/g, (id) => next.get(id) ?? id))
}

/** Tests the rules of `WorkspaceStore` for imports and exports of whole workspaces. */
export const testImport = (it: ContractTests): void => {
  const test = makeTest(it.effect)
  it.effect.prop(
    "importWorkspace gives a workspace exactly the content of any archive, as a dry run predicts, and importing the export changes nothing",
    { from: archives, to: archives, other: archives, shared: Arbitrary.schema(Schema.Natural) },
    Effect.fnUntraced(function* ({ from, to, other, shared }) {
      const { importWorkspace } = yield* WorkspaceStore
      yield* loadArchive(other)
      // Some items are in both archives, with different values.
      const target: Archive = {
        ...shareIds(to, from, shared % 4),
        workspace: { ...to.workspace, id: from.workspace.id }
      }
      for (const archive of [from, swapIds(from), target, from]) {
        const expected = yield* importWorkspace(archive, { dryRun: true })
        assert.deepStrictEqual(yield* importWorkspace(archive), expected)
        yield* assertReads(archive)
        const exported = yield* exportArchive(archive.workspace.id)
        assert.deepStrictEqual(exported, inExportOrder(archive))
        const { rows } = yield* importWorkspace(exported)
        assert.deepStrictEqual(rows, { added: 0, changed: 0, removed: 0 })
      }
      yield* assertReads(other)
    }),
    { arbitrary: { runs: 10, maxShrinks: 50 } }
  )

  test("importWorkspace counts each row that it adds, changes and removes", function* () {
    const { importWorkspace } = yield* WorkspaceStore
    const { archive: own } = sample()
    const { workspace, users, api_keys, folders, tags, fragments, prompts } = own
    const ofPrompts = prompts.flatMap(({ tags, fragments, versions }) => [tags, fragments, versions])
    const lists = [users, api_keys, folders, tags, fragments, prompts, ...ofPrompts]
    const added = { added: 1 + lists.flat().length, changed: 0, removed: 0 }
    assert.deepStrictEqual((yield* importWorkspace(own)).rows, added)
    const [first, second, ...others] = prompts
    const { rows } = yield* importWorkspace({
      ...own,
      workspace: { ...workspace, name: "Renamed" },
      users: [{ ...users[0]!, must_reset_password: true }, ...users.slice(1)],
      api_keys: [{ ...api_keys[0]!, name: "Renamed" }, ...api_keys.slice(1)],
      tags: [...tags, tag("added")],
      prompts: [{ ...second!, title: "Changed", tags: [] }, ...others]
    })
    const removed = [first!.tags, first!.fragments, first!.versions, second!.tags].flat().length + 1
    assert.deepStrictEqual(rows, { added: 1, changed: 4, removed })
  })

  test("importWorkspace changes no tier and no billing status, and lifts neither a revocation nor a forced password reset", function* () {
    const fields = { tier: "free", billing_status: "disputed" } as const
    const { home, owner, key: own, archive: before } = makeTenant({ workspace: fields })
    const record = (overrides: Partial<KeyRecord> = {}) => makeRecord(own, home, overrides)
    yield* loadArchive(before)
    yield* loadArchive({
      ...before,
      workspace: { ...home, name: "Renamed", tier: "team", billing_status: "active" }
    })
    assert.deepStrictEqual(yield* findKey(own), record())
    yield* loadArchive(archive({ users: [{ ...owner, must_reset_password: true }] }))
    assert.deepStrictEqual(yield* findKey(own), record({ owner_must_reset: true }))
    yield* loadArchive({ ...before, api_keys: [{ ...own.stored, revoked_at }] })
    yield* loadArchive(before)
    yield* loadArchive(archive({ users: [owner] }))
    assert.deepStrictEqual(yield* findKey(own), record({ owner_must_reset: true, revoked: true }))
  })

  test("importWorkspace can make an existing key expire earlier, but never later", function* () {
    const [early, late] = [instant("2098-01-01T00:00:00.000Z"), instant("2099-01-01T00:00:00.000Z")]
    for (const [before, imported, after] of [
      [null, null, null],
      [null, early, early],
      [early, null, early],
      [early, late, early],
      [late, early, early]
    ] as const) {
      const { archive: own, key: ownKey } = makeTenant({ key: { expires_at: before } })
      yield* loadArchive(own)
      yield* loadArchive({ ...own, api_keys: [{ ...ownKey.stored, expires_at: imported }] })
      assert.strictEqual((yield* findKey(ownKey)).expires_at, after)
      assert.strictEqual((yield* exportArchive(own.workspace.id)).api_keys[0]!.expires_at, after)
    }
  })

  test("importWorkspace adds users and keys, removes none, and keeps the hash, the owner and the workspace of an existing key", function* () {
    const { archive: before, keys } = sample()
    const records = Effect.forEach(Object.values(keys), findKey)
    yield* loadArchive(before)
    const unchanged = yield* records
    const [home, [ada, ben]] = [before.workspace, before.users]
    const owner = user({ must_reset_password: true })
    const [added, rehashed] = [key(home.id, owner), key(home.id, ada!)]
    yield* loadArchive(
      archive({
        workspace: home,
        users: [owner, ada!, ben!],
        api_keys: [
          added.stored,
          { ...keys.active.stored, created_by: ben!.id, name: "Renamed" },
          { ...keys.legacy.stored, name: "Renamed" },
          { ...keys.revoked.stored, key_hash: rehashed.stored.key_hash }
        ]
      })
    )
    assert.deepStrictEqual(yield* records, unchanged)
    assert.deepStrictEqual(yield* Effect.flip(findKey(rehashed)), InvalidKey)
    assert.deepStrictEqual(yield* findKey(added), makeRecord(added, home, { owner_must_reset: true }))
  })

  test("importWorkspace rejects each id, hash and email (in any letter case) of other users, keys and workspaces, and names the path of each", function* () {
    const [{ archive: other, keys }, theirs, own] = [sample(), oneOfEach(), oneOfEach()]
    for (const each of [other, theirs]) yield* loadArchive(each)
    const [ada, ben, eve] = [other.users[0]!, other.users[1]!, user()]
    const shout = { email: ada.email.toUpperCase() }
    const make = () => key(own.workspace.id, eve).stored
    const taken = { ...key(null, eve).stored, id: keys.legacy.stored.id, revoked_at }
    const attempts: ReadonlyArray<readonly [items: Partial<Archive>, ...paths: ReadonlyArray<string>]> = [
      [{ users: [eve, { ...ada, email: user().email }] }, "users[1].id"],
      [{ users: [eve, { ...user(), ...shout }] }, "users[1].email"],
      [
        {
          users: [
            { ...ada, email: ben.email },
            { ...ben, email: ada.email }
          ]
        },
        ...["users[0].email", "users[0].id", "users[1].email", "users[1].id"]
      ],
      ...[keys.active, keys.revoked, keys.legacy].map(
        ({ stored: { key_hash } }) =>
          [{ api_keys: [make(), { ...make(), key_hash }] }, "api_keys[1].key_hash"] as const
      ),
      [{ api_keys: [{ ...make(), id: keys.active.stored.id }] }, "api_keys[0].id"],
      [{ api_keys: [taken] }, "api_keys[0].id"],
      // An import cannot assign a workspace to a stored key that has none.
      [{ api_keys: [{ ...taken, workspace_id: own.workspace.id }] }, "api_keys[0].id"],
      [
        {
          folders: [...own.folders, ...theirs.folders],
          tags: [...own.tags, { ...theirs.tags[0]!, name: "taken" }],
          fragments: [...own.fragments, ...theirs.fragments],
          prompts: [...own.prompts, ...theirs.prompts]
        },
        ...["folders[1].id", "fragments[1].id", "prompts[1].fragments[0].id", "prompts[1].id"],
        ...["prompts[1].versions[0].id", "tags[1].id"]
      ]
    ]
    for (const [items, ...paths] of attempts) {
      const error = yield* Effect.flip(
        loadArchive(archive({ workspace: own.workspace, users: [eve], ...items }))
      )
      assert(error._tag === "InvalidContent")
      assert.deepStrictEqual(error.problems.map(({ path }) => path).sort(), paths)
    }
    assert.isFalse((yield* findKey(keys.legacy)).revoked)
    yield* loadArchive(archive({ users: [{ ...ada, ...shout }] }))
  })

  test("exportWorkspace exports exactly the keys of the workspace and their owners, with the fields in a fixed order", function* () {
    const { archive: own } = sample()
    yield* loadArchive(sample().archive)
    yield* loadArchive({ ...own, users: [...own.users, user()] })
    const api_keys = own.api_keys.filter(({ workspace_id }) => workspace_id !== null)
    const exported = yield* exportArchive(own.workspace.id)
    assert.deepStrictEqual(exported, inExportOrder({ ...own, api_keys }))
    // docs/archive-format.md shows the order of the fields.
    for (const [item, { fields }] of [
      [exported.api_keys[0]!, StoredKey],
      [exported.prompts[0]!, WorkspacePrompt],
      [exported.prompts.find(({ title }) => title === "Greeting")!.fragments[0]!, PromptFragment],
      [exported.prompts[0]!.versions[0]!, PromptVersion]
    ] as const)
      assert.deepStrictEqual(Object.keys(item), Object.keys(fields))
  })
}
