import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import {
  type RowCounts,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../src/application/ports/WorkspaceStore.ts"
import { InvalidKey, type KeyRecord, type UserId } from "../../../src/domain/ApiKey.ts"
import { PromptNotFound } from "../../../src/domain/Prompt.ts"
import type { WorkspacePrompt } from "../../../src/domain/Workspace.ts"
import { InvalidContent } from "../../../src/domain/WorkspaceContent.ts"
import {
  archive,
  archives,
  exportArchive,
  folder,
  fragment,
  fragmentBinding,
  instant,
  key,
  loadArchive,
  makeTenant,
  newId,
  prompt,
  sample,
  tag,
  user,
  version,
  workspace
} from "../../support/archives.ts"
import {
  type ContractTests,
  addKey,
  assertReads,
  everything,
  findKey,
  foreignIdError,
  makeRecord,
  makeOneOfEach,
  rejectedPaths
} from "./support.ts"

const nothingWritten: RowCounts = { added: 0, changed: 0, removed: 0 }

export const testImport = (it: ContractTests): void => {
  it.effect.prop(
    "importWorkspace replaces the content of any workspace with the content of any archive, returns the same result as a dry run, and writes nothing if the same archive is imported again",
    { from: archives, to: archives },
    Effect.fnUntraced(function* ({ from, to }) {
      const { importWorkspace } = yield* WorkspaceStore
      const repo = yield* PromptRepo
      const target: Archive = { ...to, workspace: { ...to.workspace, id: from.workspace.id } }
      for (const [archive, replaced] of [
        [from, undefined],
        [target, from],
        [from, target]
      ] as const) {
        const expected = yield* importWorkspace(archive, { dryRun: true })
        assert.deepStrictEqual(yield* importWorkspace(archive), expected)
        yield* assertReads(archive)
        const { rows } = yield* importWorkspace(archive)
        assert.deepStrictEqual(rows, nothingWritten)
        yield* assertReads(archive)
        for (const { id } of replaced?.prompts ?? []) {
          if (archive.prompts.some((prompt) => prompt.id === id)) continue
          assert.deepStrictEqual(yield* Effect.flip(repo.get(from.workspace.id, id)), PromptNotFound)
        }
      }
    }),
    { arbitrary: { runs: 8, maxShrinks: 50 } }
  )

  it.effect(
    "importWorkspace counts the items of the archive, and each row that it adds, changes and removes",
    () =>
      Effect.gen(function* () {
        const { importWorkspace } = yield* WorkspaceStore
        const { archive: own } = sample()
        const count = <A>(list: ReadonlyArray<ReadonlyArray<A>>) => list.flat().length
        const { users, api_keys, folders, tags, fragments, prompts } = own
        const added =
          1 +
          count([users, api_keys, folders, tags, fragments, prompts] as ReadonlyArray<
            ReadonlyArray<unknown>
          >) +
          prompts.flatMap((prompt) => [...prompt.tags, ...prompt.fragments, ...prompt.versions]).length
        const initial = yield* importWorkspace(own)
        assert.deepStrictEqual(initial, {
          workspace_id: own.workspace.id,
          users: users.length,
          api_keys: api_keys.length,
          folders: folders.length,
          tags: tags.length,
          fragments: fragments.length,
          prompts: prompts.length,
          versions: prompts.flatMap(({ versions }) => versions).length,
          rows: { added, changed: 0, removed: 0 }
        })

        const [first, ...others] = prompts as readonly [WorkspacePrompt, ...Array<WorkspacePrompt>]
        const next: Archive = {
          ...own,
          workspace: { ...own.workspace, name: "Renamed" },
          users: [{ ...users[0]!, must_reset_password: true }, ...users.slice(1)],
          api_keys: [{ ...api_keys[0]!, name: "Renamed" }, ...api_keys.slice(1)],
          tags: [...tags, tag("added")],
          prompts: [{ ...others[0]!, title: "Changed", tags: [] }, ...others.slice(1)]
        }
        const expected = yield* importWorkspace(next, { dryRun: true })
        const changed = yield* importWorkspace(next)
        assert.deepStrictEqual(changed, expected)
        assert.deepStrictEqual(changed.rows, {
          added: 1,
          changed: 4,
          removed: [first.tags, first.fragments, first.versions, others[0]!.tags].flat().length + 1
        })
      })
  )

  it.effect("two concurrent first imports of a workspace both succeed", () =>
    Effect.gen(function* () {
      const { archive, keys } = sample()
      yield* Effect.all([loadArchive(archive), loadArchive(archive)], { concurrency: 2 })
      yield* assertReads(archive)
      assert.strictEqual((yield* findKey(keys.active)).id, keys.active.stored.id)
    })
  )

  it.effect(
    "importWorkspace updates the items that the archive contains, deletes content that the archive does not contain, and leaves other workspaces unchanged",
    () =>
      Effect.gen(function* () {
        const before = sample().archive
        const retained = before.prompts[0]!
        const changed: WorkspacePrompt = {
          ...retained,
          title: "Changed",
          description: "Changed",
          current_content: "Changed",
          prompt_type: "few-shot",
          target_model: "changed",
          intent: "changed",
          current_version: 9,
          folder_id: null,
          is_favorite: !retained.is_favorite,
          sort_order: 7,
          created_at: instant("2025-01-01T00:00:00.000Z"),
          updated_at: instant("2025-01-02T00:00:00.000Z"),
          tags: retained.tags.slice(1),
          fragments: retained.fragments.slice(1).map((use) => ({
            ...use,
            position: 10 - use.position,
            variable_overrides: { changed: true }
          })),
          versions: retained.versions
            .filter(({ version_number }) => version_number !== 3)
            .map((version) => ({
              ...version,
              content: "Changed",
              change_summary: "Changed",
              change_source: "changed",
              metadata: { changed: true },
              created_at: instant("2025-01-02T00:00:00.000Z")
            }))
        }
        const after: Archive = {
          ...before,
          folders: before.folders.slice(1),
          tags: before.tags.map((tag) => ({ ...tag, name: `${tag.name}!`, color: "#abcdef" })),
          fragments: before.fragments.map((fragment) => ({ ...fragment, content: `${fragment.content}!` })),
          prompts: [changed, prompt({ title: "New" })]
        }
        const other = sample()
        yield* loadArchive(other.archive)
        yield* loadArchive(before)
        yield* loadArchive(after)
        yield* assertReads(after)
        yield* assertReads(other.archive)
        const { active } = other.keys
        assert.deepStrictEqual(yield* findKey(active), makeRecord(active, other.archive.workspace))
        const repo = yield* PromptRepo
        for (const { name: tag } of before.tags) {
          assert.strictEqual((yield* repo.list(before.workspace.id, { tag }, everything)).total, 0)
        }
      })
  )

  it.effect("importWorkspace lets rows swap names, numbers and parents within a workspace", () =>
    Effect.gen(function* () {
      const [a, b] = [tag("a"), tag("b")]
      const snippet = fragment("{{x}}")
      const [one, two] = [version(1), version(2)]
      const [left, right] = [fragmentBinding(snippet, 1), fragmentBinding(snippet, 2)]
      const first = prompt({ tags: [a.id], fragments: [left, right], versions: [one, two] })
      const second = prompt({ tags: [b.id] })
      const before = archive({ tags: [a, b], fragments: [snippet], prompts: [first, second] })
      const swapped = [
        { ...one, version_number: two.version_number, parent_version_id: two.id },
        { ...two, version_number: one.version_number }
      ]
      const after: Archive = {
        ...before,
        tags: [
          { ...a, name: "b" },
          { ...b, name: "a" }
        ],
        prompts: [
          { ...first, fragments: [right], versions: [] },
          { ...second, fragments: [{ ...left, position: 3 }], versions: swapped }
        ]
      }
      yield* loadArchive(before)
      yield* loadArchive(after)
      yield* assertReads(after)
      yield* loadArchive(before)
      yield* assertReads(before)
    })
  )

  it.effect(
    "importWorkspace keeps the tier and the billing status of an existing workspace, and lifts neither a revocation nor a forced password reset, whichever workspace the archive belongs to",
    () =>
      Effect.gen(function* () {
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
        const revoked_at = instant("2026-03-01T00:00:00.000Z")
        yield* loadArchive({ ...before, api_keys: [{ ...own.stored, revoked_at }] })
        yield* loadArchive(before)
        yield* loadArchive(archive({ users: [owner] }))
        assert.deepStrictEqual(yield* findKey(own), record({ owner_must_reset: true, revoked: true }))
      })
  )

  it.effect("importWorkspace can make an existing key expire earlier, but never later", () =>
    Effect.gen(function* () {
      const [early, late] = [instant("2098-01-01T00:00:00.000Z"), instant("2099-01-01T00:00:00.000Z")]
      const cases = [
        [null, null, null],
        [null, early, early],
        [early, null, early],
        [early, late, early],
        [late, early, early]
      ] as const
      const [home, owner] = [workspace(), user()]
      const keys = cases.map(([expires_at]) => key(home.id, owner, { expires_at }))
      const importKeys = (column: 0 | 1) =>
        loadArchive(
          archive({
            workspace: home,
            users: [owner],
            api_keys: keys.map(({ stored }, index) => ({ ...stored, expires_at: cases[index]![column] }))
          })
        )
      const expiries = Effect.map(Effect.forEach(keys, findKey), (records) =>
        records.map(({ expires_at }) => expires_at)
      )
      yield* importKeys(0)
      assert.deepStrictEqual(
        yield* expiries,
        cases.map(([before]) => before)
      )
      yield* importKeys(1)
      assert.deepStrictEqual(
        yield* expiries,
        cases.map(([, , after]) => after)
      )
      const exported = (yield* exportArchive(home.id)).api_keys
      assert.deepStrictEqual(
        keys.map(({ stored }) => exported.find(({ id }) => id === stored.id)!.expires_at),
        cases.map(([, , after]) => after)
      )
    })
  )

  it.effect(
    "importWorkspace adds users and keys to a workspace and keeps users and keys that the archive does not contain",
    () =>
      Effect.gen(function* () {
        const { archive: before, keys } = sample()
        const records = Effect.forEach(Object.values(keys), findKey)
        yield* loadArchive(before)
        const unchanged = yield* records
        const owner = user({ must_reset_password: true })
        const own = key(before.workspace.id, owner)
        yield* loadArchive(archive({ workspace: before.workspace, users: [owner], api_keys: [own.stored] }))
        assert.deepStrictEqual(yield* records, unchanged)
        const expected = makeRecord(own, before.workspace, { owner_must_reset: true })
        assert.deepStrictEqual(yield* findKey(own), expected)
      })
  )

  it.effect("importWorkspace keeps the hash, the owner and the workspace of an existing key", () =>
    Effect.gen(function* () {
      const home = workspace()
      const [owner, other] = [user({ must_reset_password: true }), user()]
      const revoked_at = instant("2026-03-01T00:00:00.000Z")
      const [held, legacy, revoked] = [
        key(home.id, owner),
        key(null, other),
        key(home.id, other, { revoked_at })
      ]
      const before = archive({
        workspace: home,
        users: [owner, other],
        api_keys: [held.stored, legacy.stored, revoked.stored]
      })
      yield* loadArchive(before)
      const records = Effect.forEach([held, legacy, revoked], findKey)
      const unchanged = yield* records
      const rehashed = key(home.id, other)
      yield* loadArchive({
        ...before,
        api_keys: [
          { ...held.stored, created_by: other.id, name: "Renamed" },
          { ...legacy.stored, name: "Renamed" },
          { ...revoked.stored, key_hash: rehashed.stored.key_hash }
        ]
      })
      assert.deepStrictEqual(yield* records, unchanged)
      assert.deepStrictEqual(yield* Effect.flip(findKey(rehashed)), InvalidKey)
    })
  )

  it.effect(
    "importWorkspace ignores the letter case of emails, and rejects users whose id or email belongs to another user",
    () =>
      Effect.gen(function* () {
        const [ada, ben, eve] = [user(), user(), user()]
        yield* loadArchive(archive({ users: [ada, ben] }))
        yield* loadArchive(archive({ users: [{ ...ada, email: ada.email.toUpperCase() }] }))
        const attempt = (...users: Archive["users"]) => rejectedPaths(archive({ users }))
        assert.deepStrictEqual(yield* attempt(eve, { ...ada, email: user().email }), ["users[1].id"])
        assert.deepStrictEqual(yield* attempt(eve, { ...user(), email: ada.email }), ["users[1].email"])
        assert.deepStrictEqual(yield* attempt({ ...user(), email: ada.email.toUpperCase() }), [
          "users[0].email"
        ])
        assert.deepStrictEqual(yield* attempt({ ...ada, email: ben.email }, { ...ben, email: ada.email }), [
          "users[0].email",
          "users[0].id",
          "users[1].email",
          "users[1].id"
        ])
      })
  )

  it.effect(
    "importWorkspace rejects a key whose hash belongs to another key, and a key whose id belongs to another workspace or, without a workspace, to another user",
    () =>
      Effect.gen(function* () {
        const { archive: other, keys } = sample()
        yield* loadArchive(other)
        const [home, owner] = [workspace(), user()]
        const attempt = (...api_keys: Archive["api_keys"]) =>
          rejectedPaths(archive({ workspace: home, users: [owner], api_keys }))
        const fresh = key(home.id, owner).stored
        const revoked_at = instant("2026-03-01T00:00:00.000Z")
        for (const { stored } of [keys.active, keys.revoked, keys.legacy]) {
          assert.deepStrictEqual(
            yield* attempt(fresh, { ...key(home.id, owner).stored, key_hash: stored.key_hash }),
            ["api_keys[1].key_hash"]
          )
        }
        assert.deepStrictEqual(yield* attempt({ ...fresh, id: keys.active.stored.id }), ["api_keys[0].id"])
        // An import cannot give a workspace to a stored key without one.
        const taken = { ...key(null, owner).stored, id: keys.legacy.stored.id, revoked_at }
        assert.deepStrictEqual(yield* attempt(taken), ["api_keys[0].id"])
        assert.deepStrictEqual(yield* attempt({ ...taken, workspace_id: home.id }), ["api_keys[0].id"])
        assert.isFalse((yield* findKey(keys.legacy)).revoked)
        assert.deepStrictEqual(
          yield* Effect.flip(findKey({ plaintext: keys.active.plaintext, stored: fresh })),
          InvalidKey
        )
      })
  )

  it.effect("importWorkspace reports the first 100 conflicts and the number of all conflicts", () =>
    Effect.gen(function* () {
      const { importWorkspace } = yield* WorkspaceStore
      const seventy = <A>(make: () => A) => Array.from({ length: 70 }, make)
      const other = archive({
        users: seventy(() => user()),
        folders: seventy(() => folder()),
        fragments: seventy(() => fragment("Text"))
      })
      yield* loadArchive(other)
      const moved = {
        ...other,
        workspace: workspace(),
        users: other.users.map(({ id }) => ({ ...user(), id }))
      }
      const error = yield* Effect.flip(importWorkspace(moved))
      const locate = (list: string, owner: string) =>
        Array.from({ length: 70 }, (_, index) => ({
          path: `${list}[${index}].id`,
          message: `belongs to another ${owner}`
        }))
      assert.deepStrictEqual(
        error,
        InvalidContent([
          ...locate("users", "user"),
          ...locate("folders", "workspace"),
          ...locate("fragments", "workspace")
        ])
      )
    })
  )

  it.effect(
    "importWorkspace rejects ids that belong to another workspace, and names the path of each id",
    () =>
      Effect.gen(function* () {
        const [other, own] = [makeOneOfEach(), makeOneOfEach()]
        yield* loadArchive(other)
        const [theirs, mine] = [other.prompts[0]!, own.prompts[0]!]
        const both = {
          workspace: own.workspace,
          folders: [...own.folders, ...other.folders],
          tags: [...own.tags, { ...other.tags[0]!, name: "taken" }],
          fragments: [...own.fragments, ...other.fragments]
        }
        assert.deepStrictEqual(yield* rejectedPaths(archive({ ...both, prompts: [mine, theirs] })), [
          "folders[1].id",
          "fragments[1].id",
          "prompts[1].fragments[0].id",
          "prompts[1].id",
          "prompts[1].versions[0].id",
          "tags[1].id"
        ])
        const binding = fragmentBinding(own.fragments[0]!, 1, { id: theirs.fragments[0]!.id })
        const changed = {
          ...mine,
          fragments: [...mine.fragments, binding],
          versions: [version(7), version(8, { id: theirs.versions[0]!.id })]
        }
        assert.deepStrictEqual(yield* rejectedPaths({ ...own, prompts: [prompt(), changed] }), [
          "prompts[1].fragments[1].id",
          "prompts[1].versions[1].id"
        ])
        yield* assertReads(other)
        yield* assertReads(archive({ workspace: own.workspace }))
      })
  )

  it.effect("importWorkspace changes nothing if it rejects the archive", () =>
    Effect.gen(function* () {
      const taken = makeOneOfEach()
      yield* loadArchive(taken)
      const { archive: before, keys } = sample()
      yield* loadArchive(before)
      const records = Effect.forEach(Object.values(keys), findKey)
      const unchanged = yield* records
      const stranger = user()
      const added = key(before.workspace.id, stranger)
      const rejected: Archive = {
        ...before,
        users: [...before.users.map((user) => ({ ...user, must_reset_password: true })), stranger],
        api_keys: [
          ...before.api_keys.map((key) => ({ ...key, revoked_at: instant("2026-03-01T00:00:00.000Z") })),
          added.stored
        ],
        folders: [],
        tags: [],
        fragments: [],
        prompts: [prompt(), prompt({ id: taken.prompts[0]!.id })]
      }
      assert.deepStrictEqual(yield* rejectedPaths(rejected), ["prompts[1].id"])
      yield* assertReads(before)
      yield* assertReads(taken)
      assert.deepStrictEqual(yield* records, unchanged)
      assert.deepStrictEqual(yield* Effect.flip(findKey(added)), InvalidKey)
      yield* loadArchive(archive({ users: [{ ...stranger, id: newId<UserId>() }] }))

      const home = workspace()
      assert.deepStrictEqual(
        yield* rejectedPaths({ ...rejected, workspace: home, users: [], api_keys: [] }),
        ["prompts[1].id"]
      )
      const owner = user()
      assert.deepStrictEqual(
        yield* Effect.flip(addKey(home.id, owner.email, owner.id, key(home.id, owner))),
        WorkspaceNotFound
      )
    })
  )

  it.effect("a dry run of importWorkspace fails whenever the import would fail, and changes nothing", () =>
    Effect.gen(function* () {
      const { importWorkspace, workspaces } = yield* WorkspaceStore
      const { archive: own, keys } = sample()
      yield* loadArchive(own)
      const before = yield* exportArchive(own.workspace.id)
      const emptied = { ...archive({ workspace: own.workspace }), users: [user()] }
      yield* importWorkspace(emptied, { dryRun: true })
      assert.deepStrictEqual(yield* exportArchive(own.workspace.id), before)
      const taken = archive({ prompts: [prompt({ id: own.prompts[0]!.id })] })
      for (const dryRun of [true, false]) {
        assert.deepStrictEqual(
          yield* Effect.flip(importWorkspace(taken, { dryRun })),
          foreignIdError("prompts[0].id")
        )
      }
      yield* importWorkspace(archive({ workspace: taken.workspace }), { dryRun: true })
      assert.isFalse((yield* workspaces).some(({ id }) => id === taken.workspace.id))
      assert.isFalse((yield* findKey(keys.active)).revoked)
    })
  )
}
