import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeKeyUsageWriter } from "../../../../../src/adapters/outbound/postgres/keys/KeyUsageWriter.ts"
import { layer as keyStore } from "../../../../../src/adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import { migrate } from "../../../../../src/adapters/outbound/postgres/schema/Migrations.ts"
import { KeyStore } from "../../../../../src/application/ports/KeyStore.ts"
import type { ApiKeyId } from "../../../../../src/domain/ApiKey.ts"
import { toTimestamp } from "../../../../../src/domain/Timestamp.ts"
import { archive, key, loadArchive, newId, user, workspace } from "../../../../support/archives.ts"
import { connect, freshDatabase, migratedDatabase, onServer } from "../../../../support/database/server.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const noon = Date.UTC(2026, 0, 1, 12)

/** Adds two unused keys, and returns their ids. */
const addTwoKeys = Effect.gen(function* () {
  const [home, owner] = [workspace(), user()]
  const keys = [key(home.id, owner).stored, key(home.id, owner).stored] as const
  yield* loadArchive(archive({ workspace: home, users: [owner], api_keys: keys }))
  return keys.map(({ id }) => id) as [ApiKeyId, ApiKeyId]
}).pipe(Effect.provide(workspaceStore))

/** Reads the times of the last use of keys. */
const readTimes = Effect.fnUntraced(function* (ids: ReadonlyArray<ApiKeyId>) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ readonly last_used_at: string | null }>`
    select last_used_at from api_keys where id = any (${ids}::uuid[]) order by array_position(${ids}::uuid[], id)`
  return rows.map(({ last_used_at }) => last_used_at)
})

const test = makeTest(it.live, migratedDatabase)

test("KeyUsageWriter writes last_used_at of all used keys in one batch, and never decreases a stored last_used_at", function* () {
  const [one, two] = yield* addTwoKeys
  const usage = yield* makeKeyUsageWriter
  usage.record(one, noon)
  usage.record(one, noon + 10)
  usage.record(newId<ApiKeyId>(), noon)
  yield* usage.flush
  assert.deepStrictEqual(yield* readTimes([one, two]), [toTimestamp(noon + 10), null])
  usage.record(one, noon + 9)
  usage.record(two, noon + 20)
  yield* usage.flush
  assert.deepStrictEqual(yield* readTimes([one, two]), [noon + 10, noon + 20].map(toTimestamp))
})

test("the key store writes last_used_at of the used keys when the store closes", function* () {
  const [one] = yield* addTwoKeys
  yield* Effect.map(KeyStore, ({ markUsed }) => markUsed(one, noon)).pipe(Effect.provide(keyStore))
  assert.deepStrictEqual(yield* readTimes([one]), [toTimestamp(noon)])
})

test("if a flush is interrupted, the next flush writes last_used_at", function* () {
  const writes: Array<unknown> = []
  const unsafe = (_: string, params: unknown) => Effect.callback(() => void writes.push(params))
  const usage = yield* Effect.provideService(makeKeyUsageWriter, PgClient.PgClient, { unsafe } as never)
  usage.record(newId<ApiKeyId>(), noon)
  for (let i = 0; i < 2; i++) yield* Effect.timeoutOption(usage.flush, "10 millis")
  assert.deepStrictEqual(writes[1], writes[0])
})

makeTest(it.live)("if a flush fails, the next flush writes last_used_at", function* () {
  const database = yield* freshDatabase
  const [one] = yield* Effect.andThen(migrate, addTwoKeys).pipe(Effect.provide(connect(database)))
  yield* Effect.gen(function* () {
    const usage = yield* makeKeyUsageWriter
    yield* onServer(`alter database ${database} allow_connections false`)
    usage.record(one, noon)
    yield* usage.flush
    yield* onServer(`alter database ${database} allow_connections true`)
    yield* usage.flush
    assert.deepStrictEqual(yield* readTimes([one]), [toTimestamp(noon)])
  }).pipe(Effect.provide(connect(database)))
})
