import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Layer from "effect/Layer"
import { loadArchive, sample } from "../../../../support/archives.ts"
import { openSessions } from "../../../../support/database/interleave.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const database = workspaceStore.pipe(Layer.provideMerge(migratedDatabase))

/** Makes two workspaces and a list of writes, each with the workspaces that the write notifies. */
const makeWrites = (role: "origin" | "replica") => {
  const [first, second] = [sample().archive, sample().archive]
  const [own, other] = [first.workspace.id, second.workspace.id]
  const [{ id: greeting, tags }] = first.prompts as [(typeof first.prompts)[0]]
  const retired = second.prompts.find(({ title }) => title === "Retired")!.id
  const writes: ReadonlyArray<readonly [text: string, notified: ReadonlyArray<string>]> = [
    [`update workspaces set tier = 'team' where id = '${own}'`, [own]],
    [`update prompts set title = 'x' where id = '${greeting}'`, [own]],
    [`update prompts set is_archived = true where id = '${greeting}'`, [own]],
    [`update prompts set intent = 'x' where workspace_id in ('${own}', '${other}')`, [own, other]],
    [`insert into prompts (workspace_id) values ('${own}')`, [own]],
    [`delete from prompts where workspace_id = '${own}' and title = 'Retired'`, [own]],
    [
      `update prompts set workspace_id = '${other}' where title = '' and workspace_id = '${own}'`,
      [own, other]
    ],
    [`update folders set name = 'x' where workspace_id = '${own}'`, [own]],
    [`update tags set name = name || 'x' where workspace_id = '${own}'`, [own]],
    [
      `update prompt_tags set prompt_id = '${retired}' where prompt_id = '${greeting}' and tag_id = '${tags[0]}'`,
      [own, other]
    ],
    [
      `update prompt_tags set tag_id = '${tags[0]}' where prompt_id = '${greeting}' and tag_id = '${tags[1]}'`,
      [own]
    ],
    [`delete from prompt_tags where prompt_id = '${greeting}'`, [own]],
    [`update prompt_versions set content = 'x' where prompt_id = '${greeting}'`, [own]],
    [`update fragments set content = 'x' where workspace_id = '${own}'`, [own]],
    [`update prompt_fragments set position = 9 where prompt_id = '${greeting}'`, [own]],
    [`update api_keys set revoked_at = now() where workspace_id = '${own}'`, [own]],
    [`update api_keys set expires_at = now() where workspace_id = '${own}'`, [own]],
    ["insert into audit_events (actor, action, subject) values ('a', 'b', 'c')", []],
    [`update api_keys set workspace_id = '${other}' where workspace_id = '${own}'`, [own, other]],
    [`update api_keys set workspace_id = '${own}' where workspace_id is null`, [own]],
    [`delete from api_keys where workspace_id = '${own}'`, [own]],
    ["update api_keys set last_used_at = now()", []],
    [
      `update users set must_reset_password = true where id in (select created_by from api_keys where workspace_id = '${other}')`,
      role === "replica" ? ["*"] : [other]
    ],
    ["truncate prompts cascade", ["*"]],
    [`delete from workspaces where id = '${own}'`, [own]]
  ]
  return { archives: [first, second], writes }
}

layer(database, { excludeTestServices: true })((it) => {
  const test = makeTest(it.effect)

  for (const role of ["origin", "replica"] as const)
    test(`with session_replication_role = ${role}, a write notifies the workspaces whose reads change, and a truncate notifies all`, function* () {
      const { archives, writes } = makeWrites(role)
      for (const archive of archives) yield* loadArchive(archive)
      const [session] = yield* openSessions
      yield* session.query(`set session_replication_role = ${role}`, [])
      for (const [text, notified] of writes) {
        const write = session.query(text, [])
        assert.deepStrictEqual(yield* collectNotifications(write), notified.toSorted(), text)
      }
    })

  test("a statement notifies each changed workspace if at most 1,000 workspaces change, and otherwise all workspaces with one notification", function* () {
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
})
