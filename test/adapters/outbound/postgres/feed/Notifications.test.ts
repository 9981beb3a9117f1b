import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { WorkspaceStore } from "../../../../../src/application/ports/WorkspaceStore.ts"
import { loadArchive, sample } from "../../../../support/archives.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const database = workspaceStore.pipe(Layer.provideMerge(migratedDatabase))

describe("the notifications of a write", () => {
  layer(database, { excludeTestServices: true })((it) => {
    const first = sample()
    const second = sample()
    const own = first.archive.workspace.id
    const other = second.archive.workspace.id
    const [greeting] = first.archive.prompts
    const seed = Effect.andThen(loadArchive(first.archive), loadArchive(second.archive))

    const writes: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
      ["a workspace's tier", `update workspaces set tier = 'team' where id = '${own}'`, [own]],
      ["a prompt's title", `update prompts set title = 'x' where id = '${greeting!.id}'`, [own]],
      [
        "the archiving of a prompt with tags",
        `update prompts set is_archived = true where id = '${greeting!.id}'`,
        [own]
      ],
      ["prompts of two workspaces", "update prompts set intent = intent || 'x'", [own, other]],
      ["a new prompt", `insert into prompts (workspace_id) values ('${own}')`, [own]],
      [
        "the deletion of a prompt",
        `delete from prompts where workspace_id = '${own}' and title = 'Retired'`,
        [own]
      ],
      [
        "a prompt that moves to another workspace",
        `update prompts set workspace_id = '${other}' where title = '' and workspace_id = '${own}'`,
        [own, other]
      ],
      ["a folder's name", `update folders set name = 'x' where workspace_id = '${own}'`, [own]],
      ["a tag's name", `update tags set name = name || 'x' where workspace_id = '${own}'`, [own]],
      [
        "a tag that moves to a prompt of another workspace",
        `update prompt_tags set prompt_id = (select id from prompts where workspace_id = '${other}' and title = 'Retired')
          where prompt_id = '${greeting!.id}' and tag_id = '${greeting!.tags[0]}'`,
        [own, other]
      ],
      [
        "a tag that replaces another tag of a prompt",
        `update prompt_tags set tag_id = '${greeting!.tags[0]}' where prompt_id = '${greeting!.id}'
          and tag_id = '${greeting!.tags[1]}'`,
        [own]
      ],
      [
        "the removal of a tag from a prompt",
        `delete from prompt_tags where prompt_id = '${greeting!.id}'`,
        [own]
      ],
      [
        "a version's text",
        `update prompt_versions set content = 'x' where prompt_id = '${greeting!.id}'`,
        [own]
      ],
      ["a fragment's text", `update fragments set content = 'x' where workspace_id = '${own}'`, [own]],
      ["a binding", `update prompt_fragments set position = 9 where prompt_id = '${greeting!.id}'`, [own]],
      ["a revocation", `update api_keys set revoked_at = now() where workspace_id = '${own}'`, [own]],
      ["an expiry", `update api_keys set expires_at = now() where workspace_id = '${own}'`, [own]],
      ["an audit event", "insert into audit_events (actor, action, subject) values ('a', 'b', 'c')", []],
      [
        "a key that moves to another workspace",
        `update api_keys set workspace_id = '${other}' where workspace_id = '${own}'`,
        [own, other]
      ],
      [
        "a legacy key that is assigned to a workspace",
        `update api_keys set workspace_id = '${own}' where workspace_id is null`,
        [own]
      ],
      ["the deletion of a key", `delete from api_keys where workspace_id = '${own}'`, [own]],
      [
        "a forced password reset of a key's owner",
        `update users set must_reset_password = true where id in (select created_by from api_keys where workspace_id = '${other}')`,
        [other]
      ],
      ["an update of last_used_at", "update api_keys set last_used_at = now()", []],
      ["a truncate of all prompts", "truncate prompts cascade", ["*"]],
      ["the deletion of a workspace", `delete from workspaces where id = '${own}'`, [own]]
    ]

    it.effect(
      "a write notifies exactly the workspaces whose reads change, and a truncate notifies all workspaces",
      () =>
        Effect.gen(function* () {
          yield* seed
          const sql = yield* PgClient.PgClient
          for (const [name, text, expected] of writes) {
            const notified = yield* collectNotifications(sql.unsafe(text))
            assert.deepStrictEqual(notified, expected.toSorted(), name)
          }
        })
    )

    it.effect(
      "a statement notifies up to 1,000 workspaces one by one, and more of them with one notification",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          yield* sql`delete from workspaces`
          yield* sql`insert into users (email) values ('many@example.com')`
          const add = (count: number) =>
            sql`with added as (insert into workspaces (name) select 'many' from generate_series(1, ${count}) returning id)
              insert into api_keys (workspace_id, created_by, key_hash)
              select w.id, u.id, sha256(w.id::text::bytea) from added w, users u where u.email = 'many@example.com'`
          const changes = [
            "update workspaces set tier = 'team'",
            "update users set must_reset_password = not must_reset_password where email = 'many@example.com'"
          ]
          yield* add(1000)
          for (const text of changes)
            assert.strictEqual(new Set(yield* collectNotifications(sql.unsafe(text))).size, 1000, text)
          yield* add(1)
          for (const text of changes)
            assert.deepStrictEqual(yield* collectNotifications(sql.unsafe(text)), ["*"], text)
        })
    )

    it.effect("an import sends one notification, and a second import of the same archive sends none", () =>
      Effect.gen(function* () {
        const { importWorkspace } = yield* WorkspaceStore
        const { archive } = sample()
        assert.deepStrictEqual(yield* collectNotifications(importWorkspace(archive)), [archive.workspace.id])
        assert.deepStrictEqual(yield* collectNotifications(importWorkspace(archive)), [])
      })
    )
  })
})
