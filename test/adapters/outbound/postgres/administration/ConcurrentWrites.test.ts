import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as pages from "../../../../../src/adapters/outbound/postgres/prompts/PageQueries.ts"
import { channel } from "../../../../../src/adapters/outbound/postgres/schema/Triggers.ts"
import type { PromptFilter } from "../../../../../src/application/ports/PromptRepo.ts"
import type { FolderId } from "../../../../../src/domain/Prompt.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import {
  interleave,
  isolations,
  makeInterleavings,
  openSessions
} from "../../../../support/database/interleave.ts"
import { waitForBlocked } from "../../../../support/database/locks.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const id = <A extends string>(kind: number, index: number): A =>
  `00000000-0000-4000-800${kind}-00000000000${index}` as A
const workspaces = [id<WorkspaceId>(1, 1), id<WorkspaceId>(1, 2)] as const
const [home, other] = workspaces
const folders = [id<FolderId>(2, 1), id<FolderId>(2, 2)] as const
const tags = [id(3, 1), id(3, 2)] as const
const prompts = [id(4, 1), id(4, 2)] as const
const [prompt] = prompts
const [fragment, user] = [id(5, 1), id(6, 1)]

const reset = [
  "delete from workspaces",
  "delete from users",
  `insert into workspaces (id) values ('${home}'), ('${other}')`,
  `insert into users (id, email) values ('${user}', 'a@b')`,
  ...folders.map((folder) => `insert into folders (id, workspace_id) values ('${folder}', '${home}')`),
  ...tags.map((tag) => `insert into tags (id, workspace_id, name) values ('${tag}', '${home}', '${tag}')`),
  `insert into fragments (id, workspace_id) values ('${fragment}', '${home}')`,
  ...prompts.map((prompt) => `insert into prompts (id, workspace_id) values ('${prompt}', '${home}')`),
  "insert into prompt_versions (prompt_id) select id from prompts",
  `insert into prompt_fragments (prompt_id, fragment_id) select id, '${fragment}' from prompts`,
  `insert into prompt_tags (prompt_id, tag_id) values ('${prompts[1]}', '${tags[1]}')`
]

/** Every kind of write that can change the list of a tag or the rows of a prompt, and a write that changes nothing. */
const writes = [
  ...prompts.flatMap((prompt) => [
    ...tags.flatMap((tag) => [
      `insert into prompt_tags (prompt_id, tag_id) values ('${prompt}', '${tag}') on conflict do nothing`,
      `update prompt_tags set prompt_id = '${prompt}' where tag_id = '${tag}'
        and not exists (select from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}')`,
      `update prompt_tags set tag_id = '${tag}' where prompt_id = '${prompt}'
        and not exists (select from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}')`,
      `delete from prompt_tags where prompt_id = '${prompt}' and tag_id = '${tag}'`
    ]),
    ...workspaces.map(
      (workspace) => `update prompts set workspace_id = '${workspace}' where id = '${prompt}'`
    ),
    ...["is_archived = true", "is_archived = false", "prompt_type = 'system'", `folder_id = '${folders[1]}'`]
      .concat("updated_at = updated_at + interval '1 hour'")
      .map((change) => `update prompts set ${change} where id = '${prompt}'`),
    `delete from prompts where id = '${prompt}'`,
    `insert into prompts (id, workspace_id) values ('${prompt}', '${home}') on conflict do nothing`,
    `insert into prompt_versions (prompt_id, version_number) select '${prompt}', count(*) + 1 from prompt_versions`,
    `update prompt_versions set content = content || 'x' where prompt_id = '${prompt}'`,
    `update prompt_versions set prompt_id = '${prompt}', version_number = version_number + 100
      where version_number < 100 and prompt_id <> '${prompt}'`,
    `delete from prompt_versions where prompt_id = '${prompt}'`,
    `insert into prompt_fragments (prompt_id, fragment_id) values ('${prompt}', '${fragment}')`,
    `update prompt_fragments set position = position + 1 where prompt_id = '${prompt}'`,
    `delete from prompt_fragments where prompt_id = '${prompt}'`
  ]),
  ...tags.flatMap((tag) =>
    workspaces.map((workspace) => `update tags set workspace_id = '${workspace}' where id = '${tag}'`)
  ),
  ...["delete from tags", "delete from fragments", "savepoint s"]
]

const selectContent = `select (select jsonb_agg(jsonb_build_array(p.id,
    (select jsonb_agg(v.id || v.content order by v.id) from prompt_versions v where v.prompt_id = p.id),
    (select jsonb_agg(f.id || f.position::text order by f.id) from prompt_fragments f where f.prompt_id = p.id),
    (select jsonb_agg(t.tag_id order by t.tag_id) from prompt_tags t where t.prompt_id = p.id)) order by p.id)
  from prompts p where p.workspace_id = $1)::text as content`

const selectExpected = (workspace: string, tag: string, { type, folder_id }: PromptFilter) => `
  select p.id from prompts p join prompt_tags pt on pt.prompt_id = p.id join tags t on t.id = pt.tag_id
  where p.workspace_id = '${workspace}' and t.workspace_id = '${workspace}' and t.id = '${tag}' and not p.is_archived
    ${type === undefined ? "" : `and p.prompt_type = '${type}'`}
    ${folder_id === undefined ? "" : `and p.folder_id = (select id from folders where id = '${folder_id}' and workspace_id = '${workspace}')`}
  order by p.updated_at desc, p.id desc`

/** Asserts that every list of prompts by tag equals a query of `prompts`, `prompt_tags` and `tags`. */
const assertLists = Effect.fnUntraced(function* (what: string) {
  const client = yield* PgClient.PgClient
  const filters: ReadonlyArray<PromptFilter> = [{}, { type: "system" }, { folder_id: folders[1] }]
  for (const workspace of workspaces)
    for (const tag of tags)
      for (const filter of filters) {
        const page = { page: 1, per_page: 20 }
        const { text, params } = pages.selectPrompts(workspace, { ...filter, tag }, page)
        const listed = yield* client.unsafe<{ readonly id: string | null; readonly total: number }>(
          text,
          params
        )
        const expected = yield* client.unsafe<{ readonly id: string }>(selectExpected(workspace, tag, filter))
        assert.deepStrictEqual(
          [listed[0]!.total, listed.flatMap(({ id }) => (id === null ? [] : [id]))],
          [expected.length, expected.map(({ id }) => id)],
          `${what}, workspace ${workspace}, tag ${tag}, ${JSON.stringify(filter)}`
        )
      }
})

layer(migratedDatabase, { excludeTestServices: true })((it) => {
  const test = makeTest(it.effect)
  /** Fills the database, and opens two sessions. */
  const prepare = Effect.gen(function* () {
    const client = yield* PgClient.PgClient
    for (const text of reset) yield* client.unsafe(text)
    return yield* openSessions
  })

  it.effect.prop(
    "in any interleaving of two sessions' writes, PostgreSQL notifies every changed workspace, and every list by tag has the prompts with the tag",
    [makeInterleavings(writes)],
    Effect.fnUntraced(function* ([interleaving]) {
      const client = yield* PgClient.PgClient
      const sessions = yield* prepare
      for (const session of sessions) yield* session.query("set synchronous_commit = off", [])
      const notifications = yield* client.listen(channel)
      const known = new Map<string, unknown>()
      const read = (workspace: string) => client.unsafe(selectContent, [workspace])
      /** Reads each workspace that was notified since the previous call. */
      const refresh = Effect.gen(function* () {
        yield* client.notify(channel, "end")
        for (;;) {
          const { payload } = yield* Queue.take(notifications)
          if (payload === "end") break
          if (payload === "*") known.clear()
          else known.delete(payload)
        }
        for (const workspace of workspaces)
          if (!known.has(workspace)) known.set(workspace, yield* read(workspace))
      })
      yield* refresh
      yield* interleave(sessions, interleaving, refresh)
      yield* refresh
      for (const workspace of workspaces) assert.deepStrictEqual(known.get(workspace), yield* read(workspace))
      yield* assertLists("after the transactions")
    }, Effect.scoped),
    { timeout: 180_000, arbitrary: { runs: 120, maxShrinks: 30 } }
  )

  for (const [what, write] of [
    ["changes a version", `update prompt_versions set content = 'x' where prompt_id = '${prompt}'`],
    ["deletes a version", `delete from prompt_versions where prompt_id = '${prompt}'`],
    ["deletes a binding", `delete from prompt_fragments where prompt_id = '${prompt}'`],
    ["deletes a fragment", "delete from fragments"]
  ] as const)
    test(`a transaction that ${what} does not wait for an edit of the prompt, and notifies only the workspace of the prompt`, function* () {
      const [first, second] = yield* prepare
      yield* first.query("begin", [])
      yield* first.query(`update prompts set title = 'x' where id = '${prompt}'`, [])
      assert.deepStrictEqual(yield* collectNotifications(second.query(write, [])), [home])
      yield* first.query("rollback", [])
    })

  const addKey = (workspace: string) => `insert into api_keys (workspace_id, created_by, key_hash)
    values ('${workspace}', '${user}', sha256('${workspace}'))`
  const requireReset = "update users set must_reset_password = true"
  for (const isolation of isolations)
    for (const [what, change] of [
      ["adds a key", addKey(other)],
      ["moves a key", `update api_keys set workspace_id = '${other}'`]
    ] as const) {
      const begin = [addKey(home), `begin isolation level ${isolation}`]
      test(`while another transaction ${what} of the user, a password reset at isolation level ${isolation} notifies all workspaces without waiting`, function* () {
        const [admin, issuer] = yield* prepare
        for (const text of begin) yield* admin.query(text, [])
        for (const text of ["begin", change]) yield* issuer.query(text, [])
        yield* admin.query(requireReset, [])
        yield* issuer.query("commit", [])
        assert.deepStrictEqual(yield* collectNotifications(admin.query("commit", [])), ["*"])
      })

      test(`if a transaction ${what} of a user during a password reset at isolation level ${isolation}, PostgreSQL notifies the key's workspace`, function* () {
        const [admin, issuer] = yield* prepare
        for (const text of [...begin, requireReset]) yield* admin.query(text, [])
        const issued = yield* Effect.forkChild(issuer.query(change, []), { startImmediately: true })
        // At READ COMMITTED, the reset has locked the user's row, so the transaction waits until the reset commits.
        const waits = isolation === "read committed"
        yield* waits ? waitForBlocked(yield* PgClient.PgClient) : Fiber.join(issued)
        const commit = Effect.andThen(admin.query("commit", []), Fiber.join(issued))
        assert.include(yield* collectNotifications(commit), waits ? other : "*")
      })
    }

  test("with session_replication_role = replica, every list by tag still has exactly the prompts with the tag", function* () {
    const [session] = yield* prepare
    yield* session.query("set session_replication_role = replica", [])
    const extra = id(4, 3)
    for (const text of [
      `insert into prompt_tags (prompt_id, tag_id) values ('${prompt}', '${tags[0]}')`,
      `update prompts set is_archived = true where id = '${prompts[1]}'`,
      `update prompts set workspace_id = '${other}' where id = '${prompt}'`,
      `update tags set workspace_id = '${other}' where id = '${tags[0]}'`,
      // The rows of a table can arrive before the rows to which they refer.
      `insert into prompt_tags (prompt_id, tag_id) values ('${extra}', '${tags[0]}')`,
      `insert into prompts (id, workspace_id) values ('${extra}', '${other}')`,
      `delete from prompt_tags where prompt_id = '${extra}'`
    ]) {
      yield* session.query(text, [])
      yield* assertLists(text)
    }
  })
})
