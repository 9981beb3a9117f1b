import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { newId } from "../../../../support/archives.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import {
  connectClient,
  freshName,
  freshRole,
  makeMigratedDatabase,
  toDatabaseUrl
} from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const test = makeTest(it.live)

test("the functions of the schema ignore the search_path of their caller", function* () {
  const sql = yield* connectClient(toDatabaseUrl(yield* makeMigratedDatabase(freshName())))
  const functions = yield* sql`select proname, proconfig, prosqlbody is not null as "bindsNames"
    from pg_proc where pronamespace = 'public'::regnamespace order by 1`
  assert.isAbove(functions.length, 10)
  for (const { proname, proconfig, bindsNames } of functions)
    if (bindsNames !== true)
      assert.deepStrictEqual(proconfig, ["search_path=public, pg_temp"], String(proname))
})

test("a password reset notifies all workspaces if row-level security hides keys from the session", function* () {
  const role = yield* freshRole
  const database = yield* makeMigratedDatabase(freshName())
  const [user, own, other] = [newId(), newId(), newId()]
  const sql = yield* connectClient(toDatabaseUrl(database))
  for (const text of [
    `insert into workspaces (id) values ('${own}'), ('${other}')`,
    `insert into users (id, email) values ('${user}', 'ada@example.com')`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      values ('${own}', '${user}', sha256('own')), ('${other}', '${user}', sha256('other'))`,
    `grant select, update on users, api_keys to ${role}`,
    "alter table api_keys enable row level security",
    `create policy tenants on api_keys using (workspace_id = '${own}')`
  ])
    yield* sql.unsafe(text)
  const session = yield* connectClient(toDatabaseUrl(database, role))
  const notified = yield* collectNotifications(session`update users set must_reset_password = true`).pipe(
    Effect.provideService(PgClient.PgClient, session)
  )
  assert.deepStrictEqual(notified, ["*"])
})
