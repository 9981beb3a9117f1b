import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { ProblemList } from "../../../../application/transfer/ProblemList.ts"
import { InvalidContent } from "../../../../domain/workspace/Problem.ts"
import { contentTables } from "./ContentTables.ts"
import * as queries from "./ImportQueries.ts"
import type { Staging } from "./Staging.ts"

type Conflict = ReturnType<typeof queries.decodeConflicts>[number]

/**
 * Fails if a staged row has an id, email or hash that belongs to another workspace, user or key. The error contains the
 * first conflicts and the number of all conflicts.
 */
export const rejectConflicts = Effect.fnUntraced(function* (
  sql: PgClient,
  { has }: Staging,
  workspace: string
) {
  const problems = new ProblemList()
  const add = (
    rows: ReadonlyArray<unknown>,
    describe: (conflict: Conflict) => readonly [column: string, owner: "workspace" | "user" | "key"]
  ) => {
    const conflicts = queries.decodeConflicts(rows)
    const first = conflicts.map((conflict) => {
      const [column, owner] = describe(conflict)
      return { path: `${conflict.path}.${column}`, message: `belongs to another ${owner}` }
    })
    problems.addAll(first, conflicts[0]?.count ?? 0)
  }
  if (has("users")) {
    const users = yield* sql.unsafe(queries.findConflictingUsers)
    add(users, ({ by_id }) => [by_id ? "id" : "email", "user"])
  }
  if (has("api_keys")) {
    const keys = yield* sql.unsafe(queries.findConflictingKeys, [workspace])
    add(keys, ({ by_id }) => (by_id ? ["id", "workspace"] : ["key_hash", "key"]))
  }
  for (const table of contentTables.filter(has)) {
    const rows = yield* sql.unsafe(queries.findConflictingIds(table), [workspace])
    add(rows, () => ["id", "workspace"])
  }
  if (problems.count > 0) return yield* Effect.fail(InvalidContent(problems.first, problems.count))
})
