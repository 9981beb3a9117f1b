import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as pages from "../../../../../src/adapters/outbound/postgres/prompts/PageQueries.ts"
import type { PromptFilter } from "../../../../../src/application/ports/PromptRepo.ts"
import type { FolderId } from "../../../../../src/domain/Prompt.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import {
  interleave,
  isolations,
  makeInterleavings,
  withSessions
} from "../../../../support/database/interleave.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const id = <A extends string>(kind: string, index: number): A =>
  `00000000-0000-4000-800${kind}-00000000000${index}` as A
const workspaces = [id<WorkspaceId>("1", 1), id<WorkspaceId>("1", 2)] as const
const folders = [id<FolderId>("2", 1), id<FolderId>("2", 2)] as const
const tags = [id("3", 1), id("3", 2)] as const
const prompts = [id("4", 1), id("4", 2)] as const
const quote = (value: string) => `'${value}'`

const reset = [
  "delete from workspaces",
  `insert into workspaces (id) values (${workspaces.map(quote).join("), (")})`,
  `insert into folders (id, workspace_id) values (${folders.map((folder) => `'${folder}', '${workspaces[0]}'`).join("), (")})`,
  `insert into tags (id, workspace_id, name) values (${tags.map((tag) => `'${tag}', '${workspaces[0]}', '${tag}'`).join("), (")})`,
  `insert into prompts (id, workspace_id) values (${prompts.map((prompt) => `'${prompt}', '${workspaces[0]}'`).join("), (")})`,
  `insert into prompt_tags (prompt_id, tag_id) values ('${prompts[1]}', '${tags[1]}')`
].join(";")

/** Every kind of write that can change the list of a tag, and two statements that change nothing. */
const writes = prompts.flatMap((prompt) => [
  ...tags.flatMap((tag) => [
    `insert into prompt_tags (prompt_id, tag_id) values ('${prompt}', '${tag}') on conflict do nothing`,
    `insert into prompt_tags (prompt_id, tag_id) values ('${prompt}', '${tag}') on conflict do nothing`,
    `update prompt_tags set prompt_id = '${prompt}' where tag_id = '${tag}'
      and not exists (select from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}')`,
    `update prompt_tags set tag_id = '${tag}' where prompt_id = '${prompt}'
      and not exists (select from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}')`,
    `delete from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}'`,
    ...workspaces.map((workspace) => `update tags set workspace_id = '${workspace}' where id = '${tag}'`)
  ]),
  ...["true", "false"].map(
    (archived) => `update prompts set is_archived = ${archived} where id = '${prompt}'`
  ),
  `update prompts set updated_at = updated_at + interval '1 hour' where id = '${prompt}'`,
  `update prompts set prompt_type = 'system' where id = '${prompt}'`,
  `update prompts set folder_id = '${folders[1]}' where id = '${prompt}'`,
  ...workspaces.map((workspace) => `update prompts set workspace_id = '${workspace}' where id = '${prompt}'`),
  `delete from prompts where id = '${prompt}'`,
  `insert into prompts (id, workspace_id) values ('${prompt}', '${workspaces[0]}') on conflict do nothing`,
  "savepoint s",
  "select count(*) from prompts"
])

const selectExpected = (workspace: string, tag: string, { type, folder_id }: PromptFilter) => `
  select p.id from prompts p join prompt_tags pt on pt.prompt_id = p.id join tags t on t.id = pt.tag_id
  where p.workspace_id = '${workspace}' and t.workspace_id = '${workspace}' and t.id = '${tag}' and not p.is_archived
    ${type === undefined ? "" : `and p.prompt_type = '${type}'`}
    ${folder_id === undefined ? "" : `and p.folder_id = (select id from folders where id = '${folder_id}' and workspace_id = '${workspace}')`}
  order by p.updated_at desc, p.id desc`

/** Asserts that every list by tag matches the tables that it is derived from. */
const assertLists = Effect.fnUntraced(function* (what: string) {
  const client = yield* PgClient.PgClient
  const filters: ReadonlyArray<PromptFilter> = [{}, { type: "system" }, { folder_id: folders[1] }]
  const lists = workspaces.flatMap((workspace) =>
    tags.flatMap((tag) => filters.map((filter) => ({ workspace, tag, filter })))
  )
  yield* Effect.forEach(
    lists,
    Effect.fnUntraced(function* ({ workspace, tag, filter }) {
      const { text, params } = pages.selectPrompts(workspace, { ...filter, tag }, { page: 1, per_page: 20 })
      const [listed, expected] = yield* Effect.all(
        [
          client.unsafe<{ readonly id: string | null; readonly total: number }>(text, params),
          client.unsafe<{ readonly id: string }>(selectExpected(workspace, tag, filter))
        ],
        { concurrency: 2 }
      )
      assert.deepStrictEqual(
        [listed[0]!.total, listed.flatMap(({ id }) => (id === null ? [] : [id]))],
        [expected.length, expected.map(({ id }) => id)],
        `${what}, workspace ${workspace}, tag ${tag}, ${JSON.stringify(filter)}`
      )
    }),
    { concurrency: "unbounded" }
  )
})

describe("concurrent writes", () => {
  layer(migratedDatabase, { excludeTestServices: true })((it) => {
    const prepare = Effect.flatMap(PgClient.PgClient, (client) =>
      Effect.forEach(reset.split(";"), (text) => client.unsafe(text))
    )

    it.effect.prop(
      "after any interleaving of two sessions, the list of each tag has exactly the active prompts with the tag",
      [makeInterleavings(writes)],
      ([interleaving]) =>
        withSessions((sessions) =>
          Effect.gen(function* () {
            yield* prepare
            for (const session of sessions) yield* session.query("set synchronous_commit = off", [])
            yield* interleave(sessions, interleaving)
            yield* assertLists("after the transactions")
          })
        ),
      { timeout: 90_000, arbitrary: { runs: 60, maxShrinks: 30 } }
    )

    const user = id("6", 1)
    const addKey = `insert into api_keys (workspace_id, created_by, key_hash) values ('${workspaces[0]}', '${user}', sha256('x'))`
    const moveKey = `update api_keys set workspace_id = '${workspaces[1]}' where workspace_id = '${workspaces[0]}'`
    const requireReset = `update users set must_reset_password = true where id = '${user}'`
    const prepareUser = Effect.andThen(
      prepare,
      Effect.flatMap(PgClient.PgClient, (client) =>
        Effect.forEach(
          ["delete from users", `insert into users (id, email) values ('${user}', 'a@b')`],
          (text) => client.unsafe(text)
        )
      )
    )

    for (const isolation of isolations)
      for (const [what, change, before, home] of [
        ["adds a key", addKey, undefined, workspaces[0]],
        ["moves a key", moveKey, addKey, workspaces[1]]
      ] as const) {
        it.effect(
          `a ${isolation} password reset notifies all workspaces while another transaction ${what} of the user`,
          () =>
            withSessions(([admin, issuer]) =>
              Effect.gen(function* () {
                yield* prepareUser
                if (before !== undefined) yield* issuer.query(before, [])
                yield* issuer.query("begin", [])
                yield* issuer.query(change, [])
                yield* admin.query(`begin isolation level ${isolation}`, [])
                // The reset must not wait for the other transaction.
                yield* admin.query("set local lock_timeout = '1ms'", [])
                yield* admin.query(requireReset, [])
                yield* issuer.query("commit", [])
                assert.deepStrictEqual(yield* collectNotifications(admin.query("commit", [])), ["*"])
              })
            )
        )

        it.effect(
          `a transaction that ${what} of a user during a ${isolation} password reset never leaves the key's workspace without a notification`,
          () =>
            withSessions(([admin, issuer]) =>
              Effect.gen(function* () {
                yield* prepareUser
                if (before !== undefined) yield* issuer.query(before, [])
                yield* admin.query(`begin isolation level ${isolation}`, [])
                yield* admin.query(requireReset, [])
                const issued = yield* Effect.forkChild(issuer.query(change, []), { startImmediately: true })
                yield* Effect.sleep("50 millis")
                const waits = issued.pollUnsafe() === undefined
                const commit = Effect.andThen(admin.query("commit", []), Fiber.join(issued))
                assert.include(yield* collectNotifications(commit), waits ? home : "*")
              })
            )
        )
      }

    it.effect("under session_replication_role = replica, the lists of tags stay correct", () =>
      withSessions(([session]) =>
        Effect.gen(function* () {
          yield* prepare
          yield* session.query("set session_replication_role = replica", [])
          const other = workspaces[1]
          const extra = id("4", 3)
          for (const text of [
            `insert into prompt_tags (prompt_id, tag_id) values ('${prompts[0]}', '${tags[0]}')`,
            `update prompts set is_archived = true where id = '${prompts[1]}'`,
            `update prompts set workspace_id = '${other}' where id = '${prompts[0]}'`,
            `update tags set workspace_id = '${other}' where id = '${tags[0]}'`,
            // The rows of a table may arrive before the rows that they refer to.
            `insert into prompt_tags (prompt_id, tag_id) values ('${extra}', '${tags[0]}')`,
            `insert into prompts (id, workspace_id) values ('${extra}', '${other}')`,
            `delete from prompt_tags where prompt_id = '${extra}'`
          ]) {
            yield* session.query(text, [])
            yield* assertLists(text)
          }
        })
      )
    )
  })
})
