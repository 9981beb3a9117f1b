import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import {
  migrate,
  migrations,
  readSchemaStatus,
  runMigrations
} from "../../../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import {
  assertSchemaCurrent,
  schemaVersion
} from "../../../../../src/adapters/outbound/postgres/schema/SchemaVersion.ts"
import { findServerMismatch } from "../../../../../src/adapters/outbound/postgres/schema/SchemaMismatch.ts"
import { expectedTriggers } from "../../../../../src/adapters/outbound/postgres/schema/Triggers.ts"
import { collectNotifications } from "../../../../support/database/notifications.ts"
import { connect, emptyDatabase, freshDatabase, freshRole, onServer } from "../../../../support/postgres.ts"

const readTables = Effect.flatMap(
  PgClient.PgClient,
  (sql) =>
    sql<{ readonly name: string }>`select table_name as name from information_schema.tables
      where table_schema = 'public' order by 1`
).pipe(Effect.map((rows) => rows.map(({ name }) => name)))

const allTables = [
  "api_keys",
  "audit_events",
  "folders",
  "fragments",
  "imported_states",
  "prompt_fragments",
  "prompt_retrieval_migrations",
  "prompt_tags",
  "prompt_versions",
  "prompts",
  "tags",
  "users",
  "workspaces"
]

const readHistory = Effect.flatMap(
  PgClient.PgClient,
  (sql) => sql`select id, name from prompt_retrieval_migrations order by id`
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

const readTrace = Effect.flatMap(
  PgClient.PgClient,
  (sql) => sql<{ readonly step: number }>`select step from trace order by step`
).pipe(Effect.map((rows) => rows.map(({ step }) => step)))

describe("a PostgreSQL server's version", () => {
  it.each([90624, 130023])(
    "the server version %s is rejected, and the error names the required version",
    (version) => {
      assert.deepStrictEqual(findServerMismatch(version), {
        _tag: "SchemaMismatch",
        message: `the server is PostgreSQL ${Math.floor(version / 10_000)} and this program needs PostgreSQL 14 or later: upgrade the server`
      })
    }
  )

  it.each([140000, 150020, 180001])("the server version %s is accepted", (version) => {
    assert.isUndefined(findServerMismatch(version))
  })
})

describe("migrations", () => {
  it.live("migrate creates every table, and a second run changes nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Effect.flip(assertSchemaCurrent), {
        _tag: "SchemaMismatch",
        message: `the database's schema is version 0 and this program needs ${migrations.length}: run migrate`
      })
      const all = migrations.map(({ name }, index) => ({ id: index + 1, name }))
      const version = migrations.length
      assert.deepStrictEqual(yield* readSchemaStatus, { version: 0, pending: all })
      assert.deepStrictEqual(yield* migrate, { version, ran: all })
      assert.deepStrictEqual(yield* readTables, allTables)
      assert.deepStrictEqual(yield* migrate, { version, ran: [] })
      yield* assertSchemaCurrent
      assert.deepStrictEqual(yield* readHistory, [{ id: 1, name: "initial" }])
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live(
    "if six processes start at the same time, each migration runs once, in order, and later only new migrations run",
    () =>
      Effect.gen(function* () {
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
  )

  it.live("migrate changes nothing if one migration fails", () =>
    Effect.gen(function* () {
      const broken = [
        ...makeTracedMigrations(1),
        { name: "broken", statements: ["create table half ()", "select 1/0"] }
      ]
      const exit = yield* Effect.exit(runMigrations(broken))
      assert.strictEqual(exit._tag, "Failure")
      assert.deepStrictEqual(yield* readTables, [])
      yield* runMigrations(makeTracedMigrations(2))
      assert.deepStrictEqual(yield* readTrace, [1, 2])
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live(
    "a migration that waits for a transaction does not make reads time out, and runs after the transaction",
    () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const { queryPrompts } = yield* Database
        yield* migrate
        const isReading = yield* Deferred.make<void>()
        const mayEnd = yield* Deferred.make<void>()
        const reader = yield* Effect.forkChild(
          sql.withTransaction(
            sql`select from prompts`.pipe(
              Effect.andThen(Deferred.succeed(isReading, undefined)),
              Effect.andThen(Deferred.await(mayEnd))
            )
          )
        )
        yield* Deferred.await(isReading)
        const later = {
          name: "later",
          statements: ["alter table prompts add column added text"]
        }
        const migration = yield* Effect.forkChild(runMigrations([...migrations, later]))
        const waiting = sql`select from pg_locks where relation = 'prompts'::regclass and not granted`
        yield* Effect.repeat(waiting, {
          until: (rows) => rows.length > 0,
          schedule: Schedule.spaced("10 millis")
        })

        assert.deepStrictEqual(yield* queryPrompts({ text: "select from prompts", params: [] }), [])
        assert.isUndefined(migration.pollUnsafe())
        yield* Deferred.succeed(mayEnd, undefined)
        yield* Fiber.join(reader)
        assert.deepStrictEqual(yield* Fiber.join(migration), {
          version: migrations.length + 1,
          ran: [{ id: migrations.length + 1, name: "later" }]
        })
      }).pipe(Effect.provide(emptyDatabase))
  )

  it("schemaVersion is the number of migrations", () => {
    assert.strictEqual(schemaVersion, migrations.length)
  })

  it.live("migrate and assertSchemaCurrent reject a schema that is newer than the program", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      yield* migrate
      yield* sql`insert into prompt_retrieval_migrations (id, name) values (${migrations.length + 1}, 'from the future')`
      const newer = {
        _tag: "SchemaMismatch",
        message: `the database's schema is version ${migrations.length + 1} and this program knows versions up to ${migrations.length}: upgrade the program`
      } as const
      assert.deepStrictEqual(yield* Effect.flip(migrate), newer)
      assert.deepStrictEqual(yield* Effect.flip(assertSchemaCurrent), newer)
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live(
    "a migration fails if the role does not own the tables, and the error names the missing ownership",
    () =>
      Effect.gen(function* () {
        const role = yield* freshRole
        const database = yield* freshDatabase
        const asOwner = Effect.provide(connect(database))
        yield* migrate.pipe(asOwner)
        yield* Effect.flatMap(PgClient.PgClient, (sql) =>
          Effect.andThen(
            sql.unsafe(`grant create on schema public to ${role}`),
            sql.unsafe(`grant select on prompt_retrieval_migrations to ${role}`)
          )
        ).pipe(asOwner)
        const later = { name: "later", statements: [] }
        assert.deepStrictEqual(
          yield* Effect.flip(runMigrations([...migrations, later])).pipe(
            Effect.provide(connect(database, role))
          ),
          {
            _tag: "SchemaMismatch",
            message: `the database's schema needs a migration, and the role ${role} lacks the privilege to run it: ownership of the tables; deploy/roles.sql grants the privileges of each role`
          }
        )
      })
  )

  it.live(
    "on a read-only server, migrate succeeds if nothing is pending, and otherwise fails with the reason of the server",
    () =>
      Effect.gen(function* () {
        const database = yield* freshDatabase
        const readOnly = onServer(`alter database ${database} set default_transaction_read_only = on`)
        yield* readOnly
        assert.deepStrictEqual(yield* Effect.flip(migrate).pipe(Effect.provide(connect(database))), {
          _tag: "SchemaMismatch",
          message:
            "the database's schema needs a migration, which the server rejected: cannot execute CREATE TABLE in a read-only transaction"
        })
        yield* onServer(`alter database ${database} reset default_transaction_read_only`)
        yield* migrate.pipe(Effect.provide(connect(database)))
        yield* readOnly
        yield* migrate.pipe(Effect.provide(connect(database)))
      })
  )

  describe("after triggers were disabled and enabled, as by pg_restore --disable-triggers", () => {
    const triggers = Effect.flatMap(
      PgClient.PgClient,
      (
        sql
      ) => sql`select tgrelid::regclass::text as table, tgname::text as trigger, tgenabled::text as enabled,
          pg_get_triggerdef(oid) as definition
        from pg_trigger where not tgisinternal order by 1, 2`
    )
    /** Disables every trigger of every table while `load` runs, as `pg_restore --disable-triggers` does. */
    const loadWithoutTriggers = <E>(load: Effect.Effect<unknown, E>) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const change = (action: string) =>
          Effect.forEach(allTables, (table) => sql.unsafe(`alter table ${table} ${action} trigger all`))
        yield* change("disable")
        yield* load
        yield* change("enable")
      })

    it.live(
      "migrate restores the firing mode of each trigger, corrects the copied columns of prompt_tags, and notifies running services",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          yield* runMigrations(migrations)
          const expected = yield* triggers
          assert.strictEqual(expected.length, 59)
          const notifications = yield* sql.listen("prompt_retrieval_changes")
          yield* loadWithoutTriggers(
            sql`with home as (insert into workspaces default values returning id),
            tag as (insert into tags (workspace_id) select id from home returning id),
            prompt as (insert into prompts (workspace_id) select id from home returning id)
            insert into prompt_tags (prompt_id, tag_id) select prompt.id, tag.id from prompt, tag`
          )
          assert.notDeepEqual(yield* triggers, expected)
          yield* migrate
          assert.deepStrictEqual(yield* triggers, expected)
          const [row] =
            yield* sql`select listed_at = updated_at and t.workspace_id = p.workspace_id as "isListed"
          from prompt_tags t join prompts p on p.id = t.prompt_id`
          assert.deepStrictEqual(row, { isListed: true })
          assert.strictEqual((yield* Queue.take(notifications)).payload, "*")
          yield* Effect.forEach(allTables, (table) => sql.unsafe(`alter table ${table} disable trigger user`))
          yield* migrate
          assert.deepStrictEqual(yield* triggers, expected)
        }).pipe(Effect.scoped, Effect.provide(emptyDatabase))
    )

    it.live("migrate creates triggers that were dropped, and notifies running services", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* migrate
        const expected = yield* triggers
        for (const { table, trigger } of expectedTriggers)
          yield* sql.unsafe(`drop trigger ${trigger} on ${table}`)
        assert.deepStrictEqual(yield* triggers, [])
        assert.deepStrictEqual(yield* collectNotifications(migrate), ["*"])
        assert.deepStrictEqual(yield* triggers, expected)
      }).pipe(Effect.provide(emptyDatabase))
    )

    it.live("if the function of a dropped trigger is missing too, migrate logs a warning that says so", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* migrate
        yield* sql`drop function notify_key cascade`
        const lines: Array<unknown> = []
        yield* migrate.pipe(Effect.provide(Logger.layer([Logger.make(({ message }) => lines.push(message))])))
        assert.deepStrictEqual(lines, [
          [
            "some triggers are missing or have the wrong firing mode, and the server rejected the correction: function notify_key() does not exist; run migrate as the owner of the tables"
          ]
        ])
      }).pipe(Effect.provide(emptyDatabase))
    )

    it.live("migrate leaves triggers of other programs as they are", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* migrate
        yield* sql.unsafe(`create trigger other before insert on prompts
          for each row execute function suppress_redundant_updates_trigger()`)
        yield* sql`alter table prompts disable trigger other`
        const before = yield* triggers
        yield* sql`alter table prompts enable trigger renew_listings`
        yield* migrate
        assert.deepStrictEqual(yield* triggers, before)
      }).pipe(Effect.provide(emptyDatabase))
    )

    it.live(
      "if triggers need to be restored but the server is read-only, migrate succeeds and leaves the triggers unchanged",
      () =>
        Effect.gen(function* () {
          const database = yield* freshDatabase
          const asOwner = Effect.provide(connect(database))
          yield* migrate.pipe(asOwner)
          yield* loadWithoutTriggers(Effect.void).pipe(asOwner)
          const before = yield* triggers.pipe(asOwner)
          yield* onServer(`alter database ${database} set default_transaction_read_only = on`)
          yield* migrate.pipe(Effect.provide(connect(database)))
          assert.deepStrictEqual(yield* triggers.pipe(Effect.provide(connect(database))), before)
        })
    )
  })
})
