import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeFirstRowDecoder } from "../driver/RowDecoder.ts"
import { Database } from "../Database.ts"
import { type SchemaMismatch, tablesUnreadable } from "./SchemaMismatch.ts"

/** The tables that requests read. */
const tables = [
  "workspaces",
  "users",
  "api_keys",
  "folders",
  "tags",
  "prompts",
  "prompt_tags",
  "prompt_versions",
  "prompt_fragments",
  "fragments"
]

/**
 * Selects the tables in which the role may not read any column. A table with one readable column is not selected,
 * because an operator may grant SELECT on single columns.
 */
const selectUnreadable = {
  text: `select current_user::text as role, coalesce(string_agg(name, ', '), '') as unreadable
    from unnest('{${tables.join(",")}}'::text[]) name where not has_any_column_privilege(name, 'select')`,
  params: []
}
const decodeUnreadable = makeFirstRowDecoder(
  Schema.Struct({ role: Schema.String, unreadable: Schema.String })
)

/**
 * Fails if the role of the connection lacks the privilege to read one of `tables`. The schema must be current, because
 * the query fails if a table is missing.
 */
export const assertReadable: Effect.Effect<void, SchemaMismatch | Unavailable, Database> = Effect.gen(
  function* () {
    const { queryPrompts: query } = yield* Database
    const { role, unreadable } = decodeUnreadable(yield* query(selectUnreadable))
    if (unreadable === "") return
    return yield* Effect.fail(tablesUnreadable(role, unreadable))
  }
)
