import type { PgClient } from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import {
  decodeTryLock,
  tryLockWorkspace
} from "../../../../../src/adapters/outbound/postgres/transfer/ImportQueries.ts"
import { repeatableRead } from "../../../../../src/adapters/outbound/postgres/transfer/WriteAttempts.ts"
import { InvalidContent } from "../../../../../src/domain/workspace/Problem.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import {
  type ContentEdit,
  emptyEdit,
  type WorkspaceContent
} from "../../../../../src/domain/workspace/WorkspaceContent.ts"
import { WorkspaceStore } from "../../../../../src/application/ports/WorkspaceStore.ts"
import {
  archive,
  exportArchive,
  folder,
  prompt,
  sample,
  user,
  version,
  toPartStream,
  toWorkspaceParts
} from "../../../../support/archives.ts"
import { holdLocks, waitForBlocked } from "../../../../support/database/locks.ts"
import { openStoreAndClient } from "../../../../support/database/storeAndClient.ts"

const withSetting = <E>(
  test: (setting: Effect.Success<typeof openStoreAndClient>) => Effect.Effect<void, E, Scope.Scope>
) => Effect.scoped(Effect.flatMap(openStoreAndClient, test))

/** Fails unless the effect completes within a second. */
const withinOneSecond = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.timeout(effect, "1 second")

/**
 * Changes a key, its owner and its workspace. Fails if a change takes more than a second: the change then waits for
 * a lock.
 */
const expectSecurityChanges = Effect.fnUntraced(function* (
  client: PgClient,
  key: string,
  owner: string,
  workspace: string
) {
  for (const [statement, id] of [
    ["update api_keys set revoked_at = now() where id = $1 and revoked_at is null returning id", key],
    ["update users set must_reset_password = true where id = $1", owner],
    ["update api_keys set last_used_at = now() where id = $1", key],
    ["update workspaces set billing_status = 'disputed', tier = 'free' where id = $1", workspace]
  ] as const)
    yield* withinOneSecond(client.unsafe(statement, [id]))
})

/** Selects the modes of the locks that other connections hold on tables and indexes. */
const heldLocks = `select distinct l.mode from pg_locks l join pg_class c on c.oid = l.relation
  where c.relkind in ('r', 'i') and c.relpersistence = 'p' and c.relnamespace = 'public'::regnamespace
    and l.pid <> pg_backend_pid() and l.database = (select oid from pg_database where datname = current_database())
  order by l.mode`

const exportFrom = (store: WorkspaceStore["Service"], workspace: WorkspaceId) =>
  Effect.provideService(exportArchive(workspace), WorkspaceStore, store)

/** Returns an edit that changes the title of one prompt. */
const retitle = (content: WorkspaceContent, id: string, title: string): ContentEdit => {
  const { tags: _, fragments: __, history: ___, ...row } = content.prompts.find((prompt) => prompt.id === id)!
  return {
    ...emptyEdit,
    prompts: [{ row: { ...row, title }, tags: undefined, fragments: undefined, version: undefined }]
  }
}

describe("imports and concurrent writers", () => {
  it.live(
    "a revocation, a forced reset, the use of a key and a billing change do not wait for a slow import",
    () =>
      withSetting(
        Effect.fnUntraced(function* ({ store, other }) {
          const { archive: own, keys } = sample()
          yield* store.importWorkspace(toPartStream(own))
          const [key, owner] = [keys.active.stored, own.users[0]!]
          const stalled = yield* Deferred.make<void>()
          const resume = yield* Deferred.make<void>()
          const slow = Stream.concat(
            Stream.fromIterable(toWorkspaceParts(own)),
            Stream.unwrap(
              Effect.as(
                Effect.andThen(Deferred.succeed(stalled, undefined), Deferred.await(resume)),
                Stream.empty
              )
            )
          )
          const fiber = yield* Effect.forkScoped(store.importWorkspace(slow))
          yield* Deferred.await(stalled)
          assert.deepStrictEqual(yield* other.unsafe(heldLocks), [{ mode: "AccessShareLock" }])
          yield* expectSecurityChanges(other, key.id, owner.id, own.workspace.id)
          yield* Deferred.succeed(resume, undefined)
          yield* Fiber.join(fiber)
          const after = yield* exportFrom(store, own.workspace.id)
          assert.isNotNull(after.api_keys.find(({ id }) => id === key.id)!.revoked_at)
          assert.isTrue(after.users.find(({ id }) => id === owner.id)!.must_reset_password)
          assert.deepStrictEqual(after.workspace, {
            ...own.workspace,
            billing_status: "disputed",
            tier: "free"
          })
        })
      )
  )

  it.live("security changes do not wait while the content of an archive is merged", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own, keys } = sample()
        yield* store.importWorkspace(toPartStream(own))
        const [key, owner] = [keys.active.stored, own.users[0]!]
        // The import waits for this row. While it waits, it holds all its other locks.
        const release = yield* holdLocks(other, [
          "select from prompts where id = $1 for update",
          [own.prompts[0]!.id]
        ])
        const changed: Archive = {
          ...own,
          workspace: { ...own.workspace, name: "Renamed" },
          api_keys: own.api_keys.map((key) => ({ ...key, name: "Renamed" })),
          users: own.users.map((user) => ({ ...user, must_reset_password: true })),
          prompts: own.prompts.map((prompt) => ({ ...prompt, title: "Changed" }))
        }
        const fiber = yield* Effect.forkScoped(store.importWorkspace(toPartStream(changed)))
        yield* waitForBlocked(other)
        yield* expectSecurityChanges(other, key.id, owner.id, own.workspace.id)
        yield* release
        yield* Fiber.join(fiber)
        const after = yield* exportFrom(store, own.workspace.id)
        assert.isNotNull(after.api_keys.find(({ id }) => id === key.id)!.revoked_at)
        assert.strictEqual(after.workspace.name, "Renamed")
        assert.strictEqual(after.workspace.billing_status, "disputed")
        assert.isTrue(after.prompts.every(({ title }) => title === "Changed"))
      })
    )
  )

  it.live("an editor of another workspace never waits for an import or for editContent", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const [own, theirs] = [sample().archive, sample().archive]
        yield* store.importWorkspace(toPartStream(own))
        yield* store.importWorkspace(toPartStream(theirs))
        const [mine] = own.prompts
        const release = yield* holdLocks(other, ["select from prompts where id = $1 for update", [mine!.id]])
        const changed = { ...own, prompts: own.prompts.map((prompt) => ({ ...prompt, title: "Changed" })) }
        const imported = yield* Effect.forkScoped(store.importWorkspace(toPartStream(changed)))
        const edited = yield* Effect.forkScoped(
          store.editContent(own.workspace.id, (content) =>
            Effect.succeed([retitle(content, mine!.id, "Revised"), undefined] as const)
          )
        )
        yield* waitForBlocked(other)
        const [prompt] = theirs.prompts
        yield* withinOneSecond(
          other.unsafe("update prompts set title = 'Edited', updated_at = now() where id = $1", [prompt!.id])
        )
        yield* withinOneSecond(
          other.unsafe("insert into folders (workspace_id, name) values ($1, 'New')", [theirs.workspace.id])
        )
        yield* withinOneSecond(
          other.unsafe("delete from prompt_versions where prompt_id = $1", [theirs.prompts[1]!.id])
        )
        yield* withinOneSecond(store.importWorkspace(toPartStream({ ...theirs, prompts: [] })))
        yield* release
        yield* Fiber.join(imported)
        yield* Fiber.join(edited)
      })
    )
  )

  it.live("a dry run locks tables only with AccessShareLock, and does not wait for row locks", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(toPartStream(own))
        const changed: Archive = {
          ...own,
          workspace: { ...own.workspace, name: "Renamed" },
          api_keys: own.api_keys.map((key) => ({ ...key, name: "Renamed" })),
          users: [...own.users, user()],
          folders: [...own.folders, folder()],
          prompts: own.prompts.slice(1).map((prompt) => ({ ...prompt, title: "Changed" }))
        }
        // The dry run does not wait for these locks.
        const release = yield* holdLocks(other, [
          `with p as (select from prompts for update), k as (select from api_keys for update),
            u as (select from users for update) select from workspaces for update`,
          []
        ])
        yield* withinOneSecond(store.importWorkspace(toPartStream(changed), { dryRun: true }))
        yield* withinOneSecond(
          store.editContent(
            own.workspace.id,
            (content) =>
              Effect.succeed([retitle(content, own.prompts[0]!.id, "Revised"), undefined] as const),
            { dryRun: true }
          )
        )
        yield* release
        // The transaction of `editContent` is open while the edit is made.
        const [reading, resume] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const fiber = yield* Effect.forkScoped(
          store.editContent(
            own.workspace.id,
            () =>
              Effect.gen(function* () {
                yield* Deferred.succeed(reading, undefined)
                yield* Deferred.await(resume)
                return [emptyEdit, undefined] as const
              }),
            { dryRun: true }
          )
        )
        yield* Deferred.await(reading)
        assert.deepStrictEqual(yield* other.unsafe(heldLocks), [{ mode: "AccessShareLock" }])
        yield* Deferred.succeed(resume, undefined)
        yield* Fiber.join(fiber)
        assert.deepStrictEqual((yield* exportFrom(store, own.workspace.id)).workspace, own.workspace)
      })
    )
  )

  it.live("editContent writes only the rows that the edit names, and no row for an empty edit", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(toPartStream(own))
        // Numbers that a JavaScript number cannot represent.
        yield* other.unsafe(
          `update prompt_versions set metadata = '{"run_id": 1234567890123456789, "huge": 1e400}'`
        )
        yield* other.unsafe(
          `update prompt_fragments set variable_overrides = '{"account": 1234567890123456789}'`
        )
        const rows = (condition: string) =>
          other.unsafe(`select 'p' as t, id, xmin::text from prompts where ${condition}
            union all select 'v', id, xmin::text from prompt_versions
            union all select 'u', id, xmin::text from prompt_fragments
            union all select 'f', id, xmin::text from fragments
            union all select 'k', id, xmin::text from api_keys
            union all select 'o', id, xmin::text from users
            union all select 'w', id, xmin::text from workspaces order by t, id`)
        const all = yield* rows("true")
        yield* store.editContent(own.workspace.id, () => Effect.succeed([emptyEdit, undefined] as const))
        assert.deepStrictEqual(yield* rows("true"), all)
        const [first] = own.prompts
        const others = yield* rows(`id <> '${first!.id}'`)
        yield* store.editContent(own.workspace.id, (content) =>
          Effect.succeed([retitle(content, first!.id, "Revised"), undefined] as const)
        )
        assert.deepStrictEqual(yield* rows(`id <> '${first!.id}'`), others)
        const [numbers] = yield* other.unsafe(
          "select bool_and(metadata::text like '%1234567890123456789%') as kept from prompt_versions"
        )
        assert.deepStrictEqual(numbers, { kept: true })
      })
    )
  )

  it.live("editContent starts over when an editor changes a prompt that the edit writes", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(toPartStream(own))
        const [edited, untouched] = own.prompts
        let runs = 0
        yield* store.editContent(own.workspace.id, (content) =>
          Effect.gen(function* () {
            runs++
            if (runs === 1) {
              yield* other.unsafe(
                `with version as (insert into prompt_versions (prompt_id, version_number, content)
                  values ($1, 77, 'Edited'))
                  update prompts set current_content = 'Edited', current_version = 77 where id = $1`,
                [edited!.id]
              )
              yield* other.unsafe("update prompts set description = 'Kept' where id = $1", [untouched!.id])
            }
            return [retitle(content, edited!.id, "Revised"), undefined] as const
          }).pipe(Effect.orDie)
        )
        assert.strictEqual(runs, 2)
        const after = yield* exportFrom(store, own.workspace.id)
        const { title, current_content, current_version } = after.prompts.find(({ id }) => id === edited!.id)!
        assert.deepStrictEqual([title, current_content, current_version], ["Revised", "Edited", 77])
        assert.strictEqual(after.prompts.find(({ id }) => id === untouched!.id)!.description, "Kept")
      })
    )
  )

  it.live(
    "editContent starts over if, before its edit is written, an editor adds a version with the same number as a version of the edit",
    () =>
      withSetting(
        Effect.fnUntraced(function* ({ store, other }) {
          const own = archive({ prompts: [prompt({ versions: [version(1)] })] })
          yield* store.importWorkspace(toPartStream(own))
          const [first] = own.prompts
          let runs = 0
          yield* store.editContent(own.workspace.id, (content) =>
            Effect.gen(function* () {
              runs++
              const { last } = content.prompts[0]!.history
              const edit = retitle(content, first!.id, "Revised")
              const [revised] = edit.prompts
              if (runs === 1) {
                yield* other.unsafe(
                  "insert into prompt_versions (prompt_id, version_number, content) values ($1, 2, 'Edited')",
                  [first!.id]
                )
              }
              return [
                { ...edit, prompts: [{ ...revised!, version: version(last!.version_number + 1) }] },
                undefined
              ] as const
            }).pipe(Effect.orDie)
          )
          assert.strictEqual(runs, 2)
          const after = yield* exportFrom(store, own.workspace.id)
          assert.deepStrictEqual(
            after.prompts[0]!.versions.map(({ version_number, content }) => [version_number, content]),
            [
              [1, "Content of version 1"],
              [2, "Edited"],
              [3, "Content of version 3"]
            ] as Array<unknown>
          )
        })
      )
  )

  it.live("an import rejects a user whose email another transaction adds at the same time", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const [home, owner] = [archive().workspace, user()]
        const { archive: taken } = sample()
        yield* store.importWorkspace(toPartStream(taken))
        const release = yield* holdLocks(other, ["insert into users (email) values ($1)", [owner.email]])
        const fiber = yield* Effect.forkScoped(
          Effect.flip(store.importWorkspace(toPartStream(archive({ workspace: home, users: [owner] }))))
        )
        yield* waitForBlocked(other)
        yield* release
        assert.deepStrictEqual(
          yield* Fiber.join(fiber),
          InvalidContent([{ path: "users[0].email", message: "belongs to another user" }])
        )
      })
    )
  )

  it.live("concurrent imports of two workspaces with the same new user both succeed", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store }) {
        for (let round = 0; round < 5; round++) {
          const users = [user({ must_reset_password: true }), user()]
          const home = () => archive({ users: users.toReversed(), folders: [folder()] })
          yield* Effect.all(
            [store.importWorkspace(toPartStream(home())), store.importWorkspace(toPartStream(home()))],
            { concurrency: 2 }
          )
        }
      })
    )
  )

  it.live(
    "editContent never uses a snapshot that is older than the end of an earlier import or edit of the workspace",
    () =>
      withSetting(
        Effect.fnUntraced(function* ({ store, other }) {
          const { archive: own } = sample()
          yield* store.importWorkspace(toPartStream(own))
          /** Takes the snapshot, runs `meanwhile` on another connection, and then tries to take the lock. */
          const tryLockAfter = (meanwhile: Effect.Effect<unknown, unknown>) =>
            other.withTransaction(
              Effect.gen(function* () {
                yield* other.unsafe(repeatableRead)
                yield* other.unsafe("select")
                yield* Effect.orDie(meanwhile)
                return decodeTryLock(yield* other.unsafe(tryLockWorkspace, [own.workspace.id])).locked
              })
            )
          const revise = store.editContent(own.workspace.id, ({ folders }) =>
            Effect.succeed([
              { ...emptyEdit, folders: [folder({ name: `Folder ${folders.length}` })] },
              undefined
            ] as const)
          )
          assert.isFalse(yield* tryLockAfter(revise))
          // Transaction ids belong to the whole server. If a transaction of another database commits at the wrong
          // moment, `tryLockWorkspace` returns false although the lock is free, so the test tries again.
          const tryLock: Effect.Effect<boolean, unknown> = Effect.flatMap(
            tryLockAfter(Effect.void),
            (locked) => (locked ? Effect.succeed(true) : tryLock)
          )
          assert.isTrue(yield* Effect.timeout(tryLock, "20 seconds"))
        })
      )
  )
})
