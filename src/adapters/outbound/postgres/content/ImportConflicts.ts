import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { InvalidContent, type Problem } from "../../../../domain/Problem.ts"
import { contentTables } from "./ContentTables.ts"
import * as queries from "./ImportQueries.ts"
import type { StagedRows } from "./StagedRows.ts"

const toProblem = (path: string, owner: "user" | "key" | "workspace"): Problem => ({
  path,
  message: `belongs to another ${owner}`
})

/** Fails with all staged rows whose id, email or hash belongs to another workspace, user or key. */
export const rejectConflicts = Effect.fnUntraced(function* (
  sql: PgClient,
  { from, tables }: StagedRows,
  workspace: string
) {
  const problems: Array<Problem> = []
  if (tables.includes("users")) {
    const users = queries.decodeConflicts(yield* sql.unsafe(queries.findConflictingUsers(from)))
    for (const { path, by_id } of users) problems.push(toProblem(`${path}.${by_id ? "id" : "email"}`, "user"))
  }
  if (tables.includes("api_keys")) {
    const keys = queries.decodeConflicts(yield* sql.unsafe(queries.findConflictingKeys(from), [workspace]))
    for (const { path, by_id } of keys) {
      problems.push(by_id ? toProblem(`${path}.id`, "workspace") : toProblem(`${path}.key_hash`, "key"))
    }
  }
  for (const table of contentTables.filter((table) => tables.includes(table))) {
    const rows = queries.decodeConflictingIds(
      yield* sql.unsafe(queries.findConflictingIds(from, table), [workspace])
    )
    for (const { path } of rows) problems.push(toProblem(`${path}.id`, "workspace"))
  }
  if (problems.length > 0) return yield* Effect.fail(InvalidContent(problems))
})
