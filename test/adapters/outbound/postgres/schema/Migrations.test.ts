import { createHash } from "node:crypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import {
  migrate,
  migrations,
  runMigrations
} from "../../../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import {
  assertSchemaCurrent,
  readSchemaStatus,
  SchemaMismatch
} from "../../../../../src/adapters/outbound/postgres/schema/SchemaVersion.ts"
import { findTriggerModes } from "../../../../../src/adapters/outbound/postgres/schema/Triggers.ts"
import { collectLog } from "../../../../support/collectLog.ts"
import { holdLocks, waitForBlocked, writeDuring } from "../../../../support/database/locks.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { connect, emptyDatabase, freshDatabase, onServer } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const query = (text: string) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql.unsafe<Record<string, unknown>>(text))

const readTables = query(
  "select table_name as name from information_schema.tables where table_schema = 'public' order by 1"
).pipe(Effect.map((rows) => rows.map(({ name }) => name)))

const readTriggers = query(
  `select tgrelid::regclass::text as table, tgname::text as name, tgenabled::text as enabled,
    pg_get_triggerdef(oid) as definition from pg_trigger where not tgisinternal order by 1, 2`
)

/** Makes migrations that insert a row each time they run. */
const makeTracedMigrations = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    name: `step ${index + 1}`,
    statements: [
      "create table if not exists trace (step int)",
      `insert into trace values (${index + 1})`,
      "select pg_sleep(0.05)"
    ]
  }))

const readTrace = Effect.map(query("select step from trace order by step"), (rows) =>
  rows.map(({ step }) => step)
)

const test = makeTest(it.live, emptyDatabase)

it("the text of migration 1 never changes, because existing databases have run this text", () => {
  const text = migrations[0]!.statements.join(";\n")
  assert.strictEqual(
    createHash("sha256").update(text).digest("hex"),
    "275c8048104ac87f82d96928a697c0f3d400462833fa096b23b8ba819fb233d1"
  )
})

test("if six processes start at the same time, they run each new migration once, in order", function* () {
  const database = yield* freshDatabase
  const start = (count: number) =>
    Effect.all(
      Array.from({ length: 6 }, () =>
        runMigrations(makeTracedMigrations(count)).pipe(Effect.provide(connect(database)))
      ),
      { concurrency: "unbounded", discard: true }
    )
  yield* start(2)
  yield* start(3)
  assert.deepStrictEqual(yield* readTrace.pipe(Effect.provide(connect(database))), [1, 2, 3])
})

test("migrate changes nothing if one migration fails", function* () {
  const broken = { name: "broken", statements: ["create table half ()", "select 1/0"] }
  const exit = yield* Effect.exit(runMigrations([...makeTracedMigrations(1), broken]))
  assert.strictEqual(exit._tag, "Failure")
  assert.deepStrictEqual(yield* readTables, [])
  yield* runMigrations(makeTracedMigrations(2))
  assert.deepStrictEqual(yield* readTrace, [1, 2])
})

test("a migration that waits for a transaction does not make reads time out, and runs after the transaction", function* () {
  const sql = yield* PgClient.PgClient
  const { queryReads } = yield* Database
  yield* migrate
  const commit = yield* holdLocks(sql, ["select from prompts", []])
  const later = { name: "later", statements: ["alter table prompts add column added text"] }
  const migration = yield* Effect.forkChild(runMigrations([...migrations, later]))
  yield* waitForBlocked(sql)
  assert.deepStrictEqual(yield* queryReads({ text: "select from prompts", params: [] }), [])
  assert.isUndefined(migration.pollUnsafe())
  yield* commit
  const id = migrations.length + 1
  assert.deepStrictEqual(yield* Fiber.join(migration), { version: id, ran: [{ id, name: "later" }] })
})

const oldServer = Layer.mock(Database, {
  server: undefined as never,
  queryReads: () => Effect.succeed([{ serverVersion: 130023, hasTable: false }])
})
makeTest(it.effect, oldServer)(
  "readSchemaStatus rejects a server before PostgreSQL 14 with an error that names the required version",
  function* () {
    const message =
      "the server is PostgreSQL 13 and this program needs PostgreSQL 14 or later: upgrade the server"
    assert.deepStrictEqual(yield* Effect.flip(readSchemaStatus), new SchemaMismatch({ message }))
  }
)

test("migrate and assertSchemaCurrent reject a schema that is newer than the program, even if the schema becomes newer while migrate waits", function* () {
  const sql = yield* PgClient.PgClient
  const newerThan = (version: number) =>
    new SchemaMismatch({
      message: `the database's schema is version 99 and this program knows versions up to ${version}: upgrade the program`
    })
  yield* runMigrations(makeTracedMigrations(1))
  const newerProgram = [
    ["select pg_advisory_xact_lock(hashtext('prompt_retrieval_migrations'))", []],
    ["insert into prompt_retrieval_migrations (id, name) values (99, 'later')", []]
  ] as const
  const result = yield* writeDuring(sql, newerProgram, runMigrations(makeTracedMigrations(2)))
  assert.deepStrictEqual(result, Result.fail(newerThan(2)))
  const newer = newerThan(migrations.length)
  assert.deepStrictEqual(yield* Effect.flip(migrate), newer)
  assert.deepStrictEqual(yield* Effect.flip(assertSchemaCurrent), newer)
})

test("on a read-only server, migrate fails if a migration is pending, but only logs a warning if triggers are disabled", function* () {
  const database = yield* freshDatabase
  const setReadOnly = (value: "on" | "off") =>
    onServer(`alter database ${database} set default_transaction_read_only = ${value}`)
  yield* setReadOnly("on")
  const message =
    "the database's schema needs a migration, which the server rejected: cannot execute CREATE TABLE in a read-only transaction"
  const error = yield* Effect.flip(migrate).pipe(Effect.provide(connect(database)))
  assert.deepStrictEqual(error, new SchemaMismatch({ message }))
  yield* setReadOnly("off")
  const disable = query("alter table prompts disable trigger user")
  yield* Effect.andThen(migrate, disable).pipe(Effect.provide(connect(database)))
  yield* setReadOnly("on")
  assert.deepStrictEqual(yield* collectLog(Effect.provide(migrate, connect(database))), [
    [
      "some triggers are missing or have the wrong firing mode, and the server rejected the correction: cannot execute CREATE TRIGGER in a read-only transaction; run migrate as the owner of the tables"
    ]
  ])
})

/** The migrations, and a later migration that replaces triggers. */
const all = [
  ...migrations,
  {
    name: "later",
    statements: [
      "create function lower_name() returns trigger language plpgsql as 'begin new.name := lower(new.name); return new; end'",
      "create trigger lower_name before insert on folders for each row execute function lower_name()",
      "alter table folders enable always trigger lower_name",
      "drop trigger notify_truncate on folders"
    ]
  }
]

test("a later migration that replaces triggers gives new and old databases the same triggers", function* () {
  const version = all.length
  const expected = yield* Effect.andThen(runMigrations(all), readTriggers).pipe(
    Effect.provide(Layer.fresh(emptyDatabase))
  )
  assert.deepStrictEqual(
    findTriggerModes(all.flatMap(({ statements }) => statements)),
    new Map(expected.map(({ table, name, enabled }) => [`${table}.${name}`, String(enabled)]))
  )
  yield* migrate
  assert.deepStrictEqual(yield* runMigrations(all), { version, ran: [{ id: version, name: "later" }] })
  assert.deepStrictEqual(yield* readTriggers, expected)
})

test("migrate restores triggers of the schema that are disabled or dropped, corrects the columns that triggers fill, and notifies all workspaces", function* () {
  yield* runMigrations(all)
  const expected = yield* readTriggers
  const repair = collectNotifications(runMigrations(all))
  const tables = yield* readTables
  const switchTriggers = (mode: "disable" | "enable") =>
    Effect.forEach(tables, (table) => query(`alter table ${table} ${mode} trigger all`))
  yield* switchTriggers("disable")
  yield* query(
    `with home as (insert into workspaces default values returning id),
      tag as (insert into tags (workspace_id) select id from home returning id),
      prompt as (insert into prompts (workspace_id) select id from home returning id)
      insert into prompt_tags (prompt_id, tag_id) select prompt.id, tag.id from prompt, tag`
  )
  yield* switchTriggers("enable")
  assert.notDeepEqual(yield* readTriggers, expected)
  assert.include(yield* repair, "*")
  assert.deepStrictEqual(yield* readTriggers, expected)
  assert.deepStrictEqual(
    yield* query(`select listed_at = updated_at and t.workspace_id = p.workspace_id as "isListed"
      from prompt_tags t join prompts p on p.id = t.prompt_id`),
    [{ isListed: true }]
  )

  yield* query(`create trigger other before insert on prompts
    for each row execute function suppress_redundant_updates_trigger()`)
  yield* query("alter table prompts disable trigger other")
  const withOther = yield* readTriggers
  for (const { table, name } of expected) yield* query(`drop trigger ${name} on ${table}`)
  assert.deepStrictEqual(yield* repair, ["*"])
  assert.deepStrictEqual(yield* readTriggers, withOther)
})
