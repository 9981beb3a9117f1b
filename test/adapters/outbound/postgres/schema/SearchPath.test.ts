import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { sqlState } from "../../../../../src/adapters/outbound/postgres/driver/SqlErrors.ts"
import { newId, sample } from "../../../../support/archives.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { openStoreAndClient } from "../../../../support/database/storeAndClient.ts"
import { connect, freshName, freshRole, makeMigratedDatabase } from "../../../../support/postgres.ts"

/** Makes a database with a workspace, and a function that runs statements in one session. */
const makeSetting = Effect.gen(function* () {
  const { store, other } = yield* openStoreAndClient
  const { archive } = sample()
  yield* store.importWorkspace(archive)
  const session = yield* other.reserve
  const run = (text: string) => session.executeUnprepared(text, [], undefined)
  return {
    archive,
    workspace: archive.workspace.id,
    run,
    notified: (text: string) =>
      Effect.provideService(collectNotifications(run(text)), PgClient.PgClient, other)
  }
})

/** The tables that the trigger functions use. */
const shadowed = [
  "workspaces",
  "users",
  "api_keys",
  "folders",
  "tags",
  "fragments",
  "prompts",
  "prompt_tags",
  "prompt_versions",
  "prompt_fragments"
]

describe("the search path of the functions of the schema", () => {
  it.live(
    "triggers use the tables of the schema although the session has temporary tables with their names",
    () =>
      Effect.gen(function* () {
        const { archive, workspace, run, notified } = yield* makeSetting
        const [prompt] = archive.prompts
        for (const table of shadowed) yield* run(`create temp table ${table} (like public.${table})`)
        for (const type of ["uuid", "text", "record"]) yield* run(`create temp table "${type}" ()`)
        assert.deepStrictEqual(
          yield* notified(`update public.users set must_reset_password = true
          where id in (select created_by from public.api_keys where workspace_id = '${workspace}')`),
          [workspace]
        )
        assert.deepStrictEqual(
          yield* notified(
            `update public.prompt_versions set content = 'x' where prompt_id = '${prompt!.id}'`
          ),
          [workspace]
        )
        assert.deepStrictEqual(
          yield* notified(`delete from public.prompt_tags where prompt_id = '${prompt!.id}'`),
          [workspace]
        )
        yield* run(
          `insert into public.prompt_tags (prompt_id, tag_id) values ('${prompt!.id}', '${archive.tags[0]!.id}')`
        )
        const listed = `select t.listed_at = p.updated_at as listed from public.prompt_tags t
        join public.prompts p on p.id = t.prompt_id where p.id = '${prompt!.id}'`
        assert.deepStrictEqual(yield* run(listed), [{ listed: true }])
        yield* run(
          `update public.prompts set updated_at = updated_at + interval '1 hour' where id = '${prompt!.id}'`
        )
        assert.deepStrictEqual(yield* run(listed), [{ listed: true }])
        const limit = yield* Effect.flip(
          run(`insert into public.prompt_fragments (prompt_id, fragment_id)
        select '${prompt!.id}', '${archive.fragments[0]!.id}' from generate_series(1, 1000)`)
        )
        assert.strictEqual(sqlState(limit), "23514")
      }).pipe(Effect.scoped)
  )

  it.live(
    "the slug of a title and the limit of slots do not depend on functions of the session's search path",
    () =>
      Effect.gen(function* () {
        const { workspace, run } = yield* makeSetting
        yield* run("create schema other")
        for (const signature of [
          "regexp_replace(text, text, text)",
          "regexp_replace(text, text, text, text)",
          "rtrim(text, text)"
        ])
          yield* run(
            `create function other.${signature} returns text language sql immutable as $$ select 'other' $$`
          )
        yield* run(
          "create function other.regexp_matches(text, text, text) returns setof text[] language sql immutable as $$ select array['x'] limit 0 $$"
        )
        yield* run("set search_path = other, pg_catalog, public")
        assert.deepStrictEqual(
          yield* run(
            `insert into prompts (workspace_id, title) values ('${workspace}', 'A title') returning slug`
          ),
          [{ slug: "a-title" }]
        )
        const slots = yield* Effect.flip(run("update prompts set current_content = repeat('{{ n }}', 20000)"))
        assert.strictEqual(sqlState(slots), "23514")
      }).pipe(Effect.scoped)
  )

  it.live("a password reset notifies all workspaces if row-level security hides keys from the session", () =>
    Effect.gen(function* () {
      const role = yield* freshRole
      const database = yield* Effect.suspend(() => makeMigratedDatabase(freshName()))
      const [user, own, other] = [newId(), newId(), newId()]
      yield* Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
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
      }).pipe(Effect.provide(connect(database)))
      const notified = yield* Effect.flatMap(PgClient.PgClient, (sql) =>
        collectNotifications(sql`update users set must_reset_password = true`)
      ).pipe(Effect.provide(connect(database, role)))
      assert.deepStrictEqual(notified, ["*"])
    }).pipe(Effect.scoped)
  )
})
