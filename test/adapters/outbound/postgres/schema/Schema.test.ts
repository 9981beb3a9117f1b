import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { isSqlError } from "effect/sql/SqlError"
import { sqlState } from "../../../../../src/adapters/outbound/postgres/driver/SqlErrors.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const home = "00000000-0000-4000-8000-000000000001"
const owner = "00000000-0000-4000-8000-000000000002"
const prompt = "00000000-0000-4000-8000-000000000003"
const fragment = "00000000-0000-4000-8000-000000000004"
const hash = `decode('${"ab".repeat(32)}', 'hex')`
const own = `workspace_id) values ('${home}'`

/** A map that nests `depth` levels deep, with a scalar at the bottom. */
const nest = (depth: number) =>
  `('{"a":' || repeat('[', ${depth} - 1) || '0' || repeat(']', ${depth} - 1) || '}')::jsonb`

/** Statements in the order of their execution, each with the expected SQLSTATE. `00000` means success. */
const statements: ReadonlyArray<readonly [text: string, state: string]> = [
  // Every column with a default is omitted, except ids.
  [`insert into workspaces (id) values ('${home}')`, "00000"],
  [`insert into users (id, email) values ('${owner}', 'Ada@example.org')`, "00000"],
  [`insert into api_keys (created_by, key_hash) values ('${owner}', ${hash})`, "00000"],
  [`insert into folders (${own})`, "00000"],
  [`insert into tags (${own})`, "00000"],
  [`insert into fragments (id, workspace_id) values ('${fragment}', '${home}')`, "00000"],
  [`insert into prompts (id, workspace_id) values ('${prompt}', '${home}')`, "00000"],
  [`insert into prompt_versions (prompt_id) values ('${prompt}')`, "00000"],
  [`insert into prompt_fragments (prompt_id, fragment_id) values ('${prompt}', '${fragment}')`, "00000"],
  ["insert into prompt_tags (prompt_id, tag_id) select p.id, t.id from prompts p, tags t", "00000"],
  // Values that the domain can read.
  ["insert into workspaces (tier) values ('enterprise'), ('')", "00000"],
  ["update prompt_fragments set variable_overrides = '[1]'", "00000"],
  ["update prompt_fragments set variable_overrides = 'null'", "00000"],
  ["update prompt_versions set metadata = '{\"a\": 1e400}'", "00000"],
  // Values that the domain cannot read, duplicate values, and a reference to a missing row.
  [`update prompt_versions set metadata = ${nest(5000)}`, "23514"],
  [
    `update prompt_versions set metadata = jsonb_build_object('a', jsonb_build_array(), 'b', ${nest(100)})`,
    "23514"
  ],
  ["update workspaces set billing_status = 'free'", "23514"],
  ["insert into users (email) values ('ada@EXAMPLE.org')", "23505"],
  ["insert into users (email) values ('')", "23514"],
  [`insert into api_keys (created_by, key_hash) values ('${owner}', ${hash})`, "23505"],
  ["update api_keys set key_hash = 'short'", "23514"],
  ["update api_keys set key_start = 'ABCD'", "23514"],
  ["update api_keys set key_end = 'abcde'", "23514"],
  ["update api_keys set revoked_at = 'infinity'", "23514"],
  ["update api_keys set expires_at = 'infinity'", "23514"],
  ["update api_keys set expires_at = '0001-12-31Z BC'", "23514"],
  [`insert into tags (${own})`, "23505"],
  ["update tags set color = '#12345'", "23514"],
  ["update tags set color = 'red'", "23514"],
  ["update prompts set prompt_type = 'tool'", "23514"],
  ["update prompts set current_version = -1", "23514"],
  ["update prompts set updated_at = '-infinity'", "23514"],
  ["update prompts set updated_at = '10000-01-01Z'", "23514"],
  ["update prompts set updated_at = '9999-12-31 23:59:59.9999Z'", "23514"],
  ["update prompts set created_at = '0001-12-31Z BC'", "23514"],
  ["update prompt_versions set metadata = '[]'", "23514"],
  ["update prompt_versions set metadata = 'null'", "23514"],
  ["update prompt_versions set version_number = 0", "23514"],
  [`insert into prompt_versions (prompt_id) values ('${prompt}')`, "23505"],
  [`insert into prompt_versions (prompt_id) values ('${home}')`, "23503"]
]

describe("the schema", () => {
  layer(migratedDatabase, { excludeTestServices: true })((it) => {
    it.effect(
      "the schema accepts rows that the domain can read, and rejects invalid values, duplicates and references to missing rows",
      () =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          for (const [text, expected] of statements) {
            const state = yield* Effect.match(sql.unsafe(text), {
              onSuccess: () => "00000",
              onFailure: (error) => (isSqlError(error) ? sqlState(error) : "not SQL")
            })
            assert.strictEqual(state, expected, text)
          }
        })
    )

    it.effect("the schema stores every time as timestamptz with milliseconds", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const others = yield* sql`select table_name, column_name from information_schema.columns
          where table_schema = 'public' and data_type ~ 'time|date'
            and not (data_type = 'timestamp with time zone' and datetime_precision = 3)`
        assert.deepStrictEqual(others, [])
      })
    )
  })
})
