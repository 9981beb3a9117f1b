import * as Effect from "effect/Effect"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { Database } from "../Database.ts"
import * as record from "./MigrationRecord.ts"
import {
  findServerMismatch,
  type SchemaMismatch,
  schemaTooNew,
  schemaTooOld,
  versionUnreadable
} from "./SchemaMismatch.ts"

/** The version of the schema that this program needs: the number of migrations. */
export const schemaVersion = 1

/** Returns the version of the database's schema, which is 0 before the first migration. */
export const readSchemaVersion = Effect.gen(function* () {
  const { queryPrompts: query } = yield* Database
  const state = record.decodeServerState(yield* query(record.selectServerState))
  const mismatch = findServerMismatch(state.serverVersion)
  if (mismatch !== undefined) return yield* Effect.fail(mismatch)
  if (!state.tableExists) return 0
  if (!state.isReadable) {
    return yield* Effect.fail(versionUnreadable(state.role, `SELECT on table ${record.migrationTable}`))
  }
  return record.decodeSchemaVersion(yield* query(record.selectSchemaVersion))
})

/** Fails if the schema is newer than this program or a migration is pending; changes nothing. */
export const assertSchemaCurrent: Effect.Effect<void, SchemaMismatch | Unavailable, Database> = Effect.gen(
  function* () {
    const version = yield* readSchemaVersion
    if (version > schemaVersion) return yield* Effect.fail(schemaTooNew(version, schemaVersion))
    if (version < schemaVersion) return yield* Effect.fail(schemaTooOld(version, schemaVersion))
  }
)
