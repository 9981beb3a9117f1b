import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"
import { Database } from "../Database.ts"

/** The oldest major version of PostgreSQL that has the functions which the migrations and queries call. */
const oldestServer = 14

/** This program cannot use the database's server or schema. The message says what to do, or has the server's reason. */
export interface SchemaMismatch {
  readonly _tag: "SchemaMismatch"
  readonly message: string
}
export const SchemaMismatch = (message: string): SchemaMismatch => ({ _tag: "SchemaMismatch", message })

export const migrationTable = "prompt_retrieval_migrations"

/** Selects the number of the last migration that ran; 0 if no migration has run. */
export const selectVersion = `select coalesce(max(id), 0) as version from ${migrationTable}`

const decodeVersion = makeFirstRowDecoder(Schema.Struct({ version: Schema.Int }))

/** Decodes the row of `selectVersion`. Fails if the version is newer than the version `latest` of a program. */
export const toKnownVersion = (
  rows: ReadonlyArray<unknown>,
  latest: number
): Effect.Effect<number, SchemaMismatch> => {
  const { version } = decodeVersion(rows)
  return version <= latest
    ? Effect.succeed(version)
    : Effect.fail(
        SchemaMismatch(
          `the database's schema is version ${version} and this program knows versions up to ${latest}: upgrade the program`
        )
      )
}

const decodeServerState = makeFirstRowDecoder(
  Schema.Struct({ serverVersion: Schema.Int, hasTable: Schema.Boolean })
)

/**
 * Returns the version of the database's schema, which is 0 before the first migration. Fails if the server is too old,
 * or if the schema is newer than the version `latest` of a program.
 */
export const readSchemaVersion = Effect.fnUntraced(function* (latest: number) {
  const { queryPrompts: query } = yield* Database
  const { serverVersion, hasTable } = decodeServerState(
    yield* query({
      text: `select current_setting('server_version_num')::int as "serverVersion",
        to_regclass('${migrationTable}') is not null as "hasTable"`,
      params: []
    })
  )
  // The number 130014 means version 13.14.
  const server = Math.floor(serverVersion / 10_000)
  if (server < oldestServer)
    return yield* Effect.fail(
      SchemaMismatch(
        `the server is PostgreSQL ${server} and this program needs PostgreSQL ${oldestServer} or later: upgrade the server`
      )
    )
  return hasTable ? yield* toKnownVersion(yield* query({ text: selectVersion, params: [] }), latest) : 0
})

/**
 * Dies with PostgreSQL's reason if the role of the connection may not read a table that requests read. One readable
 * column of a table is enough, because an operator may grant SELECT on single columns.
 */
export const assertReadable: Effect.Effect<void, Unavailable, Database> = Effect.flatMap(
  Database,
  ({ queryPrompts: query }) =>
    Effect.asVoid(
      query({
        text: `select from workspaces, users, api_keys, folders, tags, prompts, prompt_tags, prompt_versions,
          prompt_fragments, fragments where false`,
        params: []
      })
    )
)
