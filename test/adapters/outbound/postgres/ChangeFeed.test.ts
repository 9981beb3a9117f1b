import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import { channel } from "../../../../src/adapters/outbound/postgres/NotifyChannel.ts"
import * as WorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { WorkspaceStore as Store } from "../../../../src/application/ports/WorkspaceStore.ts"
import { newId, sample, toPartStream } from "../../../support/archives.ts"
import { migratedDatabase, noPostgres } from "../../../support/postgres.ts"

const database = WorkspaceStore.layer.pipe(Layer.provideMerge(migratedDatabase))

describe.skipIf(noPostgres !== undefined)("what each write tells", () => {
  layer(database, { excludeTestServices: true })((it) => {
    /** The workspaces that a write tells of, in the order of their ids. */
    const told = Effect.fnUntraced(function* (write: Effect.Effect<unknown, unknown, PgClient.PgClient>) {
      const sql = yield* PgClient.PgClient
      const notices = yield* sql.listen(channel)
      const end = newId()
      yield* Effect.orDie(sql.withTransaction(write))
      yield* sql.notify(channel, end)
      const payloads: Array<string> = []
      while (payloads.at(-1) !== end) payloads.push((yield* Queue.take(notices)).payload)
      return payloads.slice(0, -1).toSorted()
    }, Effect.scoped)

    const first = sample()
    const second = sample()
    const own = first.archive.workspace.id
    const other = second.archive.workspace.id
    const [greeting] = first.archive.prompts
    const seed = Effect.gen(function* () {
      const store = yield* Store
      yield* store.importWorkspace(toPartStream(first.archive))
      yield* store.importWorkspace(toPartStream(second.archive))
    })

    const writes: ReadonlyArray<readonly [string, string, ReadonlyArray<string>]> = [
      ["a workspace's tier", `update workspaces set tier = 'team' where id = '${own}'`, [own]],
      ["a prompt's title", `update prompts set title = 'x' where id = '${greeting!.id}'`, [own]],
      [
        "a prompt's archiving, which tags follow",
        `update prompts set is_archived = true where id = '${greeting!.id}'`,
        [own]
      ],
      ["prompts of two workspaces", "update prompts set intent = intent || 'x'", [own, other]],
      ["a new prompt", `insert into prompts (workspace_id) values ('${own}')`, [own]],
      [
        "a prompt that goes",
        `delete from prompts where workspace_id = '${own}' and title = 'Retired'`,
        [own]
      ],
      [
        "a prompt that moves",
        `update prompts set workspace_id = '${other}' where title = '' and workspace_id = '${own}'`,
        [own, other]
      ],
      ["a folder's name", `update folders set name = 'x' where workspace_id = '${own}'`, [own]],
      ["a tag's name", `update tags set name = name || 'x' where workspace_id = '${own}'`, [own]],
      [
        "a tag put on another workspace's prompt instead",
        `update prompt_tags set prompt_id = (select id from prompts where workspace_id = '${other}' and title = 'Retired')
          where prompt_id = '${greeting!.id}' and tag_id = '${greeting!.tags[0]}'`,
        [own, other]
      ],
      [
        "a tag in another's place",
        `update prompt_tags set tag_id = '${greeting!.tags[0]}' where prompt_id = '${greeting!.id}'
          and tag_id = '${greeting!.tags[1]}'`,
        [own]
      ],
      ["that listings are renewed", "update prompt_tags set listed_at = null", []],
      ["a tag taken away", `delete from prompt_tags where prompt_id = '${greeting!.id}'`, [own]],
      [
        "a version's text",
        `update prompt_versions set content = 'x' where prompt_id = '${greeting!.id}'`,
        [own]
      ],
      ["a fragment's text", `update fragments set content = 'x' where workspace_id = '${own}'`, [own]],
      ["a binding", `update prompt_fragments set position = 9 where prompt_id = '${greeting!.id}'`, [own]],
      ["a revocation", `update api_keys set revoked_at = now() where workspace_id = '${own}'`, [own]],
      [
        "a key that moves",
        `update api_keys set workspace_id = '${other}' where workspace_id = '${own}'`,
        [own, other]
      ],
      [
        "a key that is assigned",
        `update api_keys set workspace_id = '${own}' where workspace_id is null`,
        [own]
      ],
      ["a key that goes", `delete from api_keys where workspace_id = '${own}'`, [own]],
      [
        "an owner's reset",
        `update users set must_reset_password = true where id in (select created_by from api_keys where workspace_id = '${other}')`,
        [other]
      ],
      ["that a key was used", "update api_keys set last_used_at = now()", []],
      ["a write to no row", "update prompts set title = 'x' where false", []],
      ["everything at once", "truncate prompts cascade", ["*"]],
      ["a workspace that goes", `delete from workspaces where id = '${own}'`, [own]]
    ]

    it.effect("every workspace that a reader may see otherwise, once", () =>
      Effect.gen(function* () {
        yield* seed
        for (const [name, text, expected] of writes) {
          const heard = yield* told(Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe(text)))
          assert.deepStrictEqual(heard, expected.toSorted(), name)
        }
      })
    )

    it.effect("an import once, and nothing the second time", () =>
      Effect.gen(function* () {
        const store = yield* Store
        const { archive } = sample()
        assert.deepStrictEqual(yield* told(store.importWorkspace(toPartStream(archive))), [
          archive.workspace.id
        ])
        assert.deepStrictEqual(yield* told(store.importWorkspace(toPartStream(archive))), [])
      })
    )
  })
})
