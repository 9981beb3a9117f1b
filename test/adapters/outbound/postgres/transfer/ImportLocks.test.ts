import type { PgClient } from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import { lockWorkspace } from "../../../../../src/adapters/outbound/postgres/transfer/WorkspaceWriter.ts"
import {
  type ContentEdit,
  InvalidContent,
  type WorkspaceContent
} from "../../../../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { WorkspaceStore } from "../../../../../src/application/ports/WorkspaceStore.ts"
import {
  archive,
  exportArchive,
  folder,
  makeEdit,
  prompt,
  sample,
  user,
  version,
  workspace
} from "../../../../support/archives.ts"
import { inExportOrder } from "../../../../contracts/WorkspaceStore/support.ts"
import { holdLocks, waitForBlocked } from "../../../../support/database/locks.ts"
import { openStoreAndClient } from "../../../../support/database/workspaceStore.ts"

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

const exportFrom = (store: WorkspaceStore["Service"], workspace: WorkspaceId) =>
  Effect.provideService(exportArchive(workspace), WorkspaceStore, store)

/** Returns an edit that changes the title of one prompt. */
const retitle = (content: WorkspaceContent, id: string, title: string): ContentEdit => {
  const {
    next_version: _,
    parent_version_id: __,
    ...prompt
  } = content.prompts.find((prompt) => prompt.id === id)!
  return makeEdit({ prompts: [{ ...prompt, title, versions: [] }] })
}

describe("imports and concurrent writers", () => {
  it.live("security changes do not wait while the content of an archive is merged", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own, keys } = sample()
        yield* store.importWorkspace(own)
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
        const fiber = yield* Effect.forkScoped(store.importWorkspace(changed))
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
        yield* store.importWorkspace(own)
        yield* store.importWorkspace(theirs)
        const [mine] = own.prompts
        const release = yield* holdLocks(other, ["select from prompts where id = $1 for update", [mine!.id]])
        const changed = { ...own, prompts: own.prompts.map((prompt) => ({ ...prompt, title: "Changed" })) }
        const imported = yield* Effect.forkScoped(store.importWorkspace(changed))
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
        yield* withinOneSecond(store.importWorkspace({ ...theirs, prompts: [] }))
        yield* release
        yield* Fiber.join(imported)
        yield* Fiber.join(edited)
      })
    )
  )

  it.live("editContent writes only the rows that the edit names, and no row for an empty edit", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(own)
        const rows = (condition: string) =>
          other.unsafe(`select 'p' as t, id, xmin::text from prompts where ${condition}
            union all select 'v', id, xmin::text from prompt_versions
            union all select 'u', id, xmin::text from prompt_fragments
            union all select 'f', id, xmin::text from fragments
            union all select 'k', id, xmin::text from api_keys
            union all select 'o', id, xmin::text from users
            union all select 'w', id, xmin::text from workspaces order by t, id`)
        const all = yield* rows("true")
        yield* store.editContent(own.workspace.id, () => Effect.succeed([makeEdit(), undefined] as const))
        assert.deepStrictEqual(yield* rows("true"), all)
        const [first] = own.prompts
        const others = yield* rows(`id <> '${first!.id}'`)
        yield* store.editContent(own.workspace.id, (content) =>
          Effect.succeed([retitle(content, first!.id, "Revised"), undefined] as const)
        )
        assert.deepStrictEqual(yield* rows(`id <> '${first!.id}'`), others)
      })
    )
  )

  it.live("editContent starts over when an editor changes a prompt that the edit writes", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(own)
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
          yield* store.importWorkspace(own)
          const [first] = own.prompts
          let runs = 0
          yield* store.editContent(own.workspace.id, (content) =>
            Effect.gen(function* () {
              runs++
              const { next_version } = content.prompts[0]!
              const edit = retitle(content, first!.id, "Revised")
              const [revised] = edit.prompts
              if (runs === 1) {
                yield* other.unsafe(
                  "insert into prompt_versions (prompt_id, version_number, content) values ($1, 2, 'Edited')",
                  [first!.id]
                )
              }
              return [
                { ...edit, prompts: [{ ...revised!, versions: [version(next_version)] }] },
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
        yield* store.importWorkspace(taken)
        const release = yield* holdLocks(other, ["insert into users (email) values ($1)", [owner.email]])
        const fiber = yield* Effect.forkScoped(
          Effect.flip(store.importWorkspace(archive({ workspace: home, users: [owner] })))
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
          yield* Effect.all([store.importWorkspace(home()), store.importWorkspace(home())], {
            concurrency: 2
          })
        }
      })
    )
  )

  it.live(
    "concurrent imports of two archives of one workspace leave exactly the content of one archive",
    () =>
      withSetting(
        Effect.fnUntraced(function* ({ store }) {
          for (let round = 0; round < 5; round++) {
            const home = workspace()
            const archives = [sample().archive, sample().archive].map(
              ({ users: _, api_keys: __, ...content }): Archive => ({
                ...content,
                workspace: home,
                users: [],
                api_keys: []
              })
            )
            yield* Effect.forEach(archives, (archive) => store.importWorkspace(archive), {
              concurrency: "unbounded"
            })
            const stored = yield* exportFrom(store, home.id)
            assert.deepInclude(archives.map(inExportOrder), stored)
          }
        })
      )
  )

  it.live.each([true, false])(
    "an import loses no version of an editor's open transaction, and waits for the editor only if it changes the same prompt: %s",
    (changesPrompt) =>
      withSetting(
        Effect.fnUntraced(function* ({ store, other }) {
          const own = archive({ prompts: [prompt({ versions: [version(1)] }), prompt()] })
          yield* store.importWorkspace(own)
          const [edited, removed] = own.prompts
          const commit = yield* holdLocks(
            other,
            [
              "insert into prompt_versions (prompt_id, version_number, content) values ($1, 2, 'Edited')",
              [edited!.id]
            ],
            ["update prompts set current_content = 'Edited', current_version = 2 where id = $1", [edited!.id]]
          )
          const imported = yield* Effect.forkScoped(
            store.importWorkspace({
              ...own,
              prompts: [changesPrompt ? { ...edited!, title: "Imported" } : edited!]
            })
          )
          if (changesPrompt) yield* waitForBlocked(other)
          else yield* Fiber.join(imported)
          yield* commit
          yield* Fiber.join(imported)
          const [after, ...others] = (yield* exportFrom(store, own.workspace.id)).prompts
          assert.deepStrictEqual(
            after!.versions.map(({ version_number, content }) => `${version_number} ${content}`),
            ["1 Content of version 1", "2 Edited"]
          )
          assert.deepStrictEqual(
            [after!.title, after!.current_content, after!.current_version],
            changesPrompt ? ["Imported", edited!.current_content, 1] : [edited!.title, "Edited", 2]
          )
          assert.isFalse(others.some(({ id }) => id === removed!.id))
        })
      )
  )

  it.live("an import rejects an id that another transaction adds to another workspace at the same time", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const [theirs, own] = [workspace(), archive({ prompts: [prompt({ versions: [version(1)] })] })]
        const taken = own.prompts[0]!.id
        yield* store.importWorkspace(archive({ workspace: theirs }))
        const commit = yield* holdLocks(other, [
          "insert into prompts (id, workspace_id) values ($1, $2)",
          [taken, theirs.id]
        ])
        const imported = yield* Effect.forkScoped(Effect.flip(store.importWorkspace(own)))
        yield* waitForBlocked(other)
        yield* commit
        assert.deepStrictEqual(
          yield* Fiber.join(imported),
          InvalidContent(
            ["prompts[0].id", "prompts[0].versions[0].id"].map((path) => ({
              path,
              message: "belongs to another workspace"
            }))
          )
        )
        const [stored] = (yield* exportFrom(store, theirs.id)).prompts
        assert.deepStrictEqual([stored!.id, stored!.title, stored!.versions], [taken, "", []])
      })
    )
  )

  it.live("editContent waits for an import of its workspace, and reads what the import wrote", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store, other }) {
        const { archive: own } = sample()
        yield* store.importWorkspace(own)
        const home = own.workspace.id
        const commit = yield* holdLocks(
          other,
          [lockWorkspace, [home]],
          ["insert into folders (workspace_id, name) values ($1, 'Imported')", [home]]
        )
        const edited = yield* Effect.forkScoped(
          store.editContent(home, ({ folders }) =>
            Effect.succeed([makeEdit(), folders.map(({ name }) => name)] as const)
          )
        )
        yield* waitForBlocked(other)
        yield* commit
        assert.include(yield* Fiber.join(edited), "Imported")
      })
    )
  )

  it.live("concurrent edits of several workspaces all succeed", () =>
    withSetting(
      Effect.fnUntraced(function* ({ store }) {
        const archives = Array.from({ length: 8 }, () => sample().archive)
        yield* Effect.forEach(archives, (archive) => store.importWorkspace(archive))
        yield* Effect.forEach(
          archives,
          ({ workspace, prompts }) =>
            store.editContent(workspace.id, (content) =>
              Effect.succeed([retitle(content, prompts[0]!.id, "Revised"), undefined] as const)
            ),
          { concurrency: "unbounded" }
        )
        for (const { workspace, prompts } of archives) {
          const after = yield* exportFrom(store, workspace.id)
          assert.strictEqual(after.prompts.find(({ id }) => id === prompts[0]!.id)!.title, "Revised")
        }
      })
    )
  )
})
