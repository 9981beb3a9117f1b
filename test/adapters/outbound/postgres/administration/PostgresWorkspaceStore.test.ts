import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import { tables } from "../../../../../src/adapters/outbound/postgres/administration/ContentWriter.ts"
import {
  type ChangeOptions,
  KeyEnded,
  KeyNotFound,
  KeyUnassigned,
  UserHasActiveKeys,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../../../src/application/ports/WorkspaceStore.ts"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import type { ApiKeyId } from "../../../../../src/domain/ApiKey.ts"
import {
  ArchiveTooLarge,
  type ContentEdit,
  InvalidContent
} from "../../../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { oneOfEach, toNewKey, toReplacement } from "../../../../contracts/WorkspaceStore/support.ts"
import {
  archive,
  exportArchive,
  folder,
  fragment,
  fragmentBinding,
  instant,
  type Key,
  key,
  makeEdit,
  newId,
  prompt,
  sample,
  user,
  version,
  workspace
} from "../../../../support/archives.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const store = Layer.provideMerge(workspaceStore, migratedDatabase)
const late = instant("2099-01-01T00:00:00.000Z")

/** Reads every row of the tables that an import writes. Each write of a row changes its `xmin` and `ctid`. */
const readEveryRow = Effect.gen(function* () {
  const sql = yield* PgClient.PgClient
  const names = ["workspaces", "audit_events", "imported_states", ...Object.keys(tables)]
  return yield* Effect.forEach(names, (table) =>
    sql.unsafe<{ readonly row: { readonly id?: unknown; readonly action?: unknown } }>(
      `select xmin::text, ctid::text, to_jsonb(t) as row from ${table} t order by ctid`
    )
  )
})

layer(store, { excludeTestServices: true })((it) => {
  const test = makeTest(it.effect)
  test("repeating an import or a recording of states writes no row, and an edit writes only the rows that it names", function* () {
    const { importWorkspace, editContent } = yield* WorkspaceStore
    const { archive } = sample()
    const home = archive.workspace.id
    const states = makeEdit({ importedStates: [{ kind: "prompt", id: home, hash: "0".repeat(64) }] })
    const recordStates = editContent(home, () => Effect.succeed([states, undefined] as const))
    const importAll = Effect.andThen(importWorkspace(archive), recordStates)
    yield* importAll
    const before = yield* readEveryRow
    assert.isTrue(before.every((rows) => rows.length > 0))
    yield* importAll
    assert.deepStrictEqual(yield* readEveryRow, before)
    const edited = { ...archive.prompts[0]!, title: "Edited", versions: [] }
    const edit = makeEdit({ prompts: [edited] })
    yield* editContent(home, () => Effect.succeed([edit, undefined] as const))
    const after = yield* readEveryRow
    const isUnchanged = ({ row: { id, action } }: (typeof after)[0][0]) =>
      id !== edited.id && action !== "workspace.edited"
    assert.deepStrictEqual(
      after.map((rows) => rows.filter(isUnchanged)),
      before.map((rows) => rows.filter(isUnchanged))
    )
  })

  test("a failed change, a change that cannot be audited and a dry run leave every row unchanged", function* () {
    const [store, sql] = [yield* WorkspaceStore, yield* PgClient.PgClient]
    const [{ archive: own, keys }, other] = [sample(), oneOfEach()]
    for (const each of [own, other]) yield* store.importWorkspace(each)
    const [home, ada, stranger, nowhere] = [own.workspace.id, own.users[0]!, user(), newId<WorkspaceId>()]
    const added = key(home, stranger)
    const emptied = archive({
      workspace: own.workspace,
      users: [...own.users.map((user) => ({ ...user, must_reset_password: true })), stranger],
      api_keys: [...own.api_keys.map((key) => ({ ...key, revoked_at: late })), added.stored],
      folders: [folder()]
    })
    const isForeign = "belongs to another workspace"
    const importing = (changes: Partial<Archive>, path: string, message = isForeign) =>
      [
        (options?: ChangeOptions) => store.importWorkspace({ ...emptied, ...changes }, options),
        InvalidContent([{ path, message }])
      ] as const
    const edit = (changes: Partial<ContentEdit>) => () =>
      Effect.succeed([makeEdit({ folders: [folder()], ...changes }), "edited"] as const)
    const editing = (changes: Partial<ContentEdit>, path: string) =>
      [
        (options?: ChangeOptions) => store.editContent(home, edit(changes), options),
        InvalidContent([{ path, message: isForeign }])
      ] as const
    const rotating = (id: ApiKeyId, replacement = added) =>
      store.rotateKey(id, toReplacement(replacement), late)
    const addKey = (workspace: WorkspaceId, added: Key) =>
      store.addKey(workspace, { email: stranger.email, newUserId: stranger.id }, toNewKey(added))

    const [mine, theirs] = [{ ...own.prompts[0]!, versions: [] }, other.prompts[0]!]
    const metadata = { a: "x".repeat(70_000) }
    const foreignBinding = fragmentBinding(own.fragments[0]!, 1, theirs.fragments[0])
    const failures: ReadonlyArray<
      readonly [change: (options?: ChangeOptions) => Effect.Effect<unknown, unknown>, error: unknown]
    > = [
      importing({ prompts: [prompt({ id: theirs.id })] }, "prompts[0].id"),
      importing({ ...archive(), prompts: [prompt({ id: theirs.id })] }, "prompts[0].id"),
      importing(
        { prompts: [prompt({ created_at: instant("0000-01-01T00:00:00.000Z") })] },
        "",
        'cannot be stored: date/time field value out of range: "0000-01-01T00:00:00.000Z"'
      ),
      importing(
        { prompts: [prompt({ versions: [version(1, { metadata })] })] },
        "",
        'cannot be stored: new row for relation "prompt_versions" violates check constraint "prompt_versions_metadata_check"'
      ),
      editing({ folders: [folder(), ...other.folders] }, "folders[1].id"),
      editing({ prompts: [{ ...mine, id: theirs.id, fragments: [] }] }, "prompts[0].id"),
      editing({ fragments: other.fragments }, "fragments[0].id"),
      editing({ prompts: [{ ...mine, versions: theirs.versions }] }, "prompts[0].versions[0].id"),
      editing({ prompts: [{ ...mine, fragments: [foreignBinding] }] }, "prompts[0].fragments[0].id"),
      [() => store.editContent(home, () => Effect.fail("no")), "no"],
      [() => store.editContent(nowhere, edit({})), WorkspaceNotFound],
      [() => rotating(newId()), KeyNotFound],
      [() => rotating(keys.revoked.stored.id), KeyEnded],
      [() => rotating(keys.legacy.stored.id), KeyUnassigned],
      [() => addKey(nowhere, added), WorkspaceNotFound],
      [
        () => store.deleteUser(ada.email, { now: 0, withActiveKeys: false }),
        new UserHasActiveKeys({ count: 3 })
      ]
    ]
    const addsStoredKey: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      addKey(home, keys.active),
      rotating(keys.active.stored.id, keys.second)
    ]
    const recorded: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
      store.addWorkspace(workspace()),
      store.setWorkspace(home, { name: "Renamed" }),
      store.deleteWorkspace(home),
      store.setUser(ada.email, true),
      store.deleteUser(ada.email, { now: 0, withActiveKeys: true }),
      addKey(home, added),
      rotating(keys.active.stored.id),
      store.revokeKey(keys.active.stored.id, late),
      store.importWorkspace(emptied),
      store.editContent(home, edit({}))
    ]
    const before = yield* readEveryRow
    for (const [change, error] of failures)
      for (const dryRun of [true, false])
        assert.deepStrictEqual(yield* Effect.flip(change({ dryRun })), error)
    for (const change of addsStoredKey) assert.isTrue(Exit.hasDies(yield* Effect.exit(change)))
    yield* store.importWorkspace(emptied, { dryRun: true })
    assert.strictEqual(yield* store.editContent(home, edit({}), { dryRun: true }), "edited")
    yield* sql`alter table audit_events rename to renamed_audit_events`
    for (const [index, change] of recorded.entries())
      assert.isTrue(Exit.hasDies(yield* Effect.exit(change)), `recorded[${index}]`)
    yield* sql`alter table renamed_audit_events rename to audit_events`
    assert.deepStrictEqual(yield* readEveryRow, before)
    yield* recorded[0]!
    assert.notDeepEqual(yield* readEveryRow, before)
  })

  test("importWorkspace accepts an archive that lists a version before its parent, even if another statement writes the parent", function* () {
    const { importWorkspace } = yield* WorkspaceStore
    const content = "x".repeat(1_000_000)
    const parent = version(1, { content })
    const versions = [version(3, { content, parent_version_id: parent.id }), version(2, { content }), parent]
    yield* importWorkspace(archive({ prompts: [prompt({ versions })] }))
  })

  test("exportWorkspace exports an unknown tier as Free, and overrides other than an object as {}", function* () {
    const [{ importWorkspace }, sql] = [yield* WorkspaceStore, yield* PgClient.PgClient]
    const text = fragment("text")
    const fragments = [1, 2, 3].map((position) => fragmentBinding(text, position))
    const own = archive({ fragments: [text], prompts: [prompt({ fragments })] })
    const home = own.workspace
    yield* importWorkspace(own)
    yield* sql`update workspaces set tier = 'enterprise' where id = ${home.id}`
    yield* sql`update prompt_fragments set variable_overrides = ('[null, [1], 2]'::jsonb) -> (position - 1)`
    assert.deepStrictEqual(yield* exportArchive(home.id), { ...own, workspace: { ...home, tier: "free" } })
  })

  test("exportWorkspace fails with ArchiveTooLarge if the texts of a workspace exceed 256 MiB", function* () {
    const [{ importWorkspace }, sql] = [yield* WorkspaceStore, yield* PgClient.PgClient]
    const own = archive({ prompts: [prompt()] })
    yield* importWorkspace(own)
    yield* sql`insert into prompt_versions (prompt_id, version_number, content)
          select ${own.prompts[0]!.id}, n, repeat('x', 1048576) from generate_series(1, 257) n`
    assert.deepStrictEqual(yield* Effect.flip(exportArchive(own.workspace.id)), ArchiveTooLarge)
    yield* importWorkspace(own)
  })
})
