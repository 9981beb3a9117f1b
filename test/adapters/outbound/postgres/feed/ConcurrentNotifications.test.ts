import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { channel } from "../../../../../src/adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import { interleave, makeInterleavings, withSessions } from "../../../../support/database/interleave.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const id = (kind: number, index: number) => `00000000-0000-4000-800${kind}-00000000000${index}`
const workspaces = [id(1, 1), id(1, 2)]
const prompts = [id(2, 1), id(2, 2)]
const [tag, fragment] = [id(3, 1), id(4, 1)]

const reset = [
  "delete from workspaces",
  `insert into workspaces (id) values ('${workspaces[0]}'), ('${workspaces[1]}')`,
  `insert into tags (id, workspace_id) values ('${tag}', '${workspaces[0]}')`,
  `insert into fragments (id, workspace_id) values ('${fragment}', '${workspaces[0]}')`,
  `insert into prompts (id, workspace_id) values ('${prompts[0]}', '${workspaces[0]}'), ('${prompts[1]}', '${workspaces[0]}')`,
  "insert into prompt_versions (prompt_id) select id from prompts",
  `insert into prompt_fragments (prompt_id, fragment_id) select id, '${fragment}' from prompts`,
  `insert into prompt_tags (prompt_id, tag_id) values ('${prompts[0]}', '${tag}')`
]

/** Writes to the rows of prompts, and moves of prompts to another workspace. */
const writes = [
  ...prompts.flatMap((prompt) => [
    ...workspaces.map(
      (workspace) => `update prompts set workspace_id = '${workspace}' where id = '${prompt}'`
    ),
    `insert into prompt_versions (prompt_id, version_number) select '${prompt}', count(*) + 1 from prompt_versions`,
    `update prompt_versions set content = content || 'x' where prompt_id = '${prompt}'`,
    `update prompt_versions set prompt_id = '${prompt}', version_number = version_number + 100
      where version_number < 100 and prompt_id <> '${prompt}'`,
    `delete from prompt_versions where prompt_id = '${prompt}'`,
    `insert into prompt_fragments (prompt_id, fragment_id) values ('${prompt}', '${fragment}')`,
    `update prompt_fragments set position = position + 1 where prompt_id = '${prompt}'`,
    `delete from prompt_fragments where prompt_id = '${prompt}'`,
    `insert into prompt_tags (prompt_id, tag_id) values ('${prompt}', '${tag}') on conflict do nothing`,
    `update prompt_tags set prompt_id = '${prompt}'`,
    `delete from prompt_tags where prompt_id = '${prompt}'`,
    `delete from prompts where id = '${prompt}'`,
    "savepoint s"
  ]),
  "delete from tags",
  "delete from fragments"
]

const selectContent = `select (select jsonb_agg(jsonb_build_array(p.id,
    (select jsonb_agg(v.id || v.content order by v.id) from prompt_versions v where v.prompt_id = p.id),
    (select jsonb_agg(f.id || f.position::text order by f.id) from prompt_fragments f where f.prompt_id = p.id),
    (select jsonb_agg(t.tag_id order by t.tag_id) from prompt_tags t where t.prompt_id = p.id)) order by p.id)
  from prompts p where p.workspace_id = $1)::text as content`

describe("the notifications of concurrent writes", () => {
  layer(migratedDatabase, { excludeTestServices: true })((it) => {
    const prepare = Effect.flatMap(PgClient.PgClient, (client) =>
      Effect.forEach(reset, (text) => client.unsafe(text))
    )
    const [prompt] = prompts
    const rowWrites = [
      ["changes a version", `update prompt_versions set content = 'x' where prompt_id = '${prompt}'`],
      ["deletes a version", `delete from prompt_versions where prompt_id = '${prompt}'`],
      ["deletes a binding", `delete from prompt_fragments where prompt_id = '${prompt}'`],
      ["deletes a fragment", "delete from fragments"]
    ] as const

    it.effect.each(rowWrites)(
      "while another transaction edits the prompt, a transaction that %s does not wait, and notifies only the workspace",
      ([, write]) =>
        withSessions(([first, second]) =>
          Effect.gen(function* () {
            yield* prepare
            yield* first.query("begin", [])
            yield* first.query(`update prompts set title = 'x' where id = '${prompt}'`, [])
            assert.deepStrictEqual(yield* collectNotifications(second.query(write, [])), [workspaces[0]])
            yield* first.query("rollback", [])
          })
        )
    )

    it.effect.prop(
      "concurrent moves and edits of prompts never leave a workspace changed without a notification",
      [makeInterleavings(writes)],
      ([interleaving]) =>
        withSessions((sessions) =>
          Effect.gen(function* () {
            const client = yield* PgClient.PgClient
            yield* prepare
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
            for (const workspace of workspaces)
              assert.deepStrictEqual(known.get(workspace), yield* read(workspace))
          }).pipe(Effect.scoped)
        ),
      { timeout: 120_000, arbitrary: { runs: 60, maxShrinks: 30 } }
    )
  })
})
