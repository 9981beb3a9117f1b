import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { PromptId } from "../../../../domain/Prompt.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { ExportPart } from "../../../../domain/workspace/WorkspaceParts.ts"
import { readWorkspace } from "./ContentReader.ts"
import * as queries from "./ExportQueries.ts"

/**
 * The number of rows that are read together. The number is small, because a row may have 1 MiB of text and 64 KiB of
 * JSON.
 */
const fetchedRows = 16

/** Reads the next rows of a list. Returns no rows at the end of the list. */
type Cursor<A> = Effect.Effect<ReadonlyArray<A>, SqlError>

const openCursor = <A>(
  sql: PgClient,
  workspace: WorkspaceId,
  name: string,
  { text, decode }: queries.ListQuery<A>
): Effect.Effect<Cursor<A>, SqlError> =>
  Effect.as(
    sql.unsafe(`declare export_${name} no scroll cursor for ${text}`, [workspace]),
    Effect.map(sql.unsafe(`fetch ${fetchedRows} from export_${name}`), decode)
  )

/** Runs `use` with the rows of a list, a few rows at a time, in their order. */
const forEachPage = Effect.fnUntraced(function* <A, E>(
  cursor: Cursor<A>,
  use: (rows: ReadonlyArray<A>) => Effect.Effect<void, E>
) {
  for (let rows = yield* cursor; rows.length > 0; rows = yield* cursor) yield* use(rows)
})

/**
 * Returns a function that reads the items of one prompt and runs `use` with them. The function must be called for every
 * prompt, in the order of the cursor.
 */
const makeChildReader = <A>(cursor: Cursor<queries.Child<A>>) => {
  let rows: ReadonlyArray<queries.Child<A>> = []
  let isEnd = false
  return Effect.fnUntraced(function* <E>(
    prompt: PromptId,
    use: (items: ReadonlyArray<A>) => Effect.Effect<void, E>
  ) {
    for (;;) {
      const next = rows.findIndex(({ promptId }) => promptId !== prompt)
      const own = next === -1 ? rows : rows.slice(0, next)
      rows = rows.slice(own.length)
      if (own.length > 0) yield* use(own.map(({ item }) => item))
      if (rows.length > 0 || isEnd) return
      rows = yield* cursor
      isEnd = rows.length === 0
    }
  })
}

/**
 * Passes a workspace to `sink`, part by part in the order of an archive: lists by id, versions by number, fragment
 * bindings by position. Must run in a transaction with one snapshot.
 */
export const exportWorkspace = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  workspace: WorkspaceId,
  sink: (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>
) {
  const open = <A>(name: string, query: queries.ListQuery<A>) => openCursor(sql, workspace, name, query)
  yield* sink([{ list: "workspace", item: yield* readWorkspace(sql, workspace) }])
  for (const [list, query] of Object.entries(queries.lists)) {
    yield* forEachPage(yield* open<ExportPart["item"]>(list, query), (items) =>
      sink(items.map((item) => ({ list, item }) as ExportPart))
    )
  }
  const forEachFragment = makeChildReader(yield* open("prompt_fragments", queries.promptFragments))
  const forEachVersion = makeChildReader(yield* open("prompt_versions", queries.versions))
  yield* forEachPage(
    yield* open("prompts", queries.prompts),
    Effect.fnUntraced(function* (prompts) {
      for (const prompt of prompts) {
        yield* sink([{ list: "prompts", item: prompt }])
        yield* forEachFragment(prompt.id, (items) =>
          sink(items.map((item) => ({ list: "prompt_fragments", item })))
        )
        yield* forEachVersion(prompt.id, (items) =>
          sink(items.map((item) => ({ list: "prompt_versions", item })))
        )
      }
    })
  )
})
