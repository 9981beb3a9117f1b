import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Archive } from "../../application/Archive.ts"
import type { ExportPart } from "../../application/ArchiveExport.ts"
import type { CurrentPrompt, PromptRow, WorkspaceContent } from "../../application/WorkspaceContent.ts"
import { WorkspaceNotFound } from "../../application/WorkspaceStore.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import type { VersionId } from "../../domain/Version.ts"

/** The most prompts whose lists are read together. */
const pageRows = 200

/** The most rows whose sizes are read at once, and the most bytes of rows that are read at once. */
const sizeRows = 1_000
const pageBytes = 4 * 1024 * 1024

/** A tier that this program does not know is treated as Free, and an archive has no other word for it. */
const workspaceRow = `select id, name, case when tier in ('solo', 'team') then tier else 'free' end as tier,
  billing_status from workspaces where id = $1`

type OwnList = "users" | "api_keys" | "folders" | "tags" | "fragments" | "prompts"

/** Rows of a workspace as an archive has them, and the bytes of a row's texts. */
const ownLists: Record<OwnList, { readonly columns: string; readonly from: string; readonly bytes: string }> =
  {
    users: {
      columns: "id, email, must_reset_password",
      from: "users u where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1)",
      bytes: "0"
    },
    api_keys: {
      columns: `id, workspace_id, created_by, name, encode(key_hash, 'hex') as key_hash, key_start, key_end,
      created_at, revoked_at`,
      from: "api_keys where workspace_id = $1",
      bytes: "octet_length(name)"
    },
    folders: { columns: "id, name", from: "folders where workspace_id = $1", bytes: "0" },
    tags: { columns: "id, name, color", from: "tags where workspace_id = $1", bytes: "0" },
    fragments: {
      columns: "id, name, content",
      from: "fragments where workspace_id = $1",
      bytes: "octet_length(content)"
    },
    prompts: {
      columns: `id, title, description, current_content, prompt_type, target_model, intent, current_version,
      (select f.id from folders f where f.id = p.folder_id and f.workspace_id = p.workspace_id) as folder_id,
      is_favorite, is_archived, sort_order, created_at, updated_at`,
      from: "prompts p where workspace_id = $1",
      bytes: `octet_length(title) + octet_length(description) + octet_length(current_content)
      + octet_length(target_model) + octet_length(intent)`
    }
  }

/** What prompts have lists of; what points at another workspace's is left out, as every read leaves it out. */
const tagsOf = `select pt.prompt_id, t.id from prompt_tags pt join tags t on t.id = pt.tag_id
  where pt.prompt_id = any($2::uuid[]) and t.workspace_id = $1 order by t.id`
const usesOf = `select pf.prompt_id, pf.id, pf.fragment_id, pf.position, pf.variable_overrides
  from prompt_fragments pf join fragments f on f.id = pf.fragment_id
  where f.workspace_id = $1`
const versionsOf = `select v.prompt_id, v.id, v.version_number, v.content, v.change_summary, v.change_source,
  (select o.id from prompt_versions o where o.id = v.parent_version_id and o.prompt_id = v.prompt_id
    and o.version_number < v.version_number) as parent_version_id,
  v.metadata, v.created_at
  from prompt_versions v join prompts p on p.id = v.prompt_id
  where p.workspace_id = $1`

/** A list of prompts' rows, the column that orders them within a prompt, and the bytes of a row. */
interface ChildList {
  readonly list: "prompt_fragments" | "prompt_versions"
  readonly alias: string
  readonly rows: string
  readonly order: string
  readonly bytes: string
}
const uses: ChildList = {
  list: "prompt_fragments",
  alias: "pf",
  rows: usesOf,
  order: "position",
  bytes: "200 + octet_length(variable_overrides::text)"
}
const versions: ChildList = {
  list: "prompt_versions",
  alias: "v",
  rows: versionsOf,
  order: "version_number",
  bytes: `200 + octet_length(content) + octet_length(change_summary) + octet_length(change_source)
    + octet_length(metadata::text)`
}

/** The ends of prompts' histories. */
const historiesOf = `select p.id, c.id as current_id, l.id as last_id, l.version_number as last_number
  from prompts p
  left join prompt_versions c on c.prompt_id = p.id and c.version_number = p.current_version
  left join lateral (select v.id, v.version_number from prompt_versions v where v.prompt_id = p.id
    order by v.version_number desc limit 1) l on true
  where p.id = any($1::uuid[])`

interface Sized {
  readonly id: string
  readonly bytes: number
}

/** Groups rows in their order so that those of a group are small together; a large row is a group of its own. */
const groups = <A extends Sized>(
  rows: ReadonlyArray<A>,
  maxRows: number
): ReadonlyArray<ReadonlyArray<A>> => {
  const all: Array<Array<A>> = []
  let bytes = 0
  for (const row of rows) {
    const group = all.at(-1)
    if (group === undefined || group.length === maxRows || bytes + row.bytes > pageBytes) {
      all.push([row])
      bytes = row.bytes
    } else {
      group.push(row)
      bytes += row.bytes
    }
  }
  return all
}

const ids = (rows: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> => rows.map(({ id }) => id)

type Child = { readonly prompt_id: string }

/** Rows by the prompt that they belong to, without its id. */
const byPrompt = <A>(rows: ReadonlyArray<A & Child>) => {
  const grouped = new Map<string, Array<A>>()
  for (const { prompt_id, ...row } of rows) {
    const group = grouped.get(prompt_id)
    if (group === undefined) grouped.set(prompt_id, [row as unknown as A])
    else group.push(row as unknown as A)
  }
  return (id: string): ReadonlyArray<A> => grouped.get(id) ?? []
}

/** Runs `use` for the rows of a workspace's list, page by page in the order of their ids. */
const eachPage = Effect.fnUntraced(function* <A extends { readonly id: string }, E, R>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  list: OwnList,
  use: (rows: ReadonlyArray<A>) => Effect.Effect<void, E, R>
) {
  const { columns, from, bytes } = ownLists[list]
  for (let after: string | undefined; ; ) {
    const sized: ReadonlyArray<Sized> = yield* sql.unsafe<Sized>(
      `select id, ${bytes} as bytes from ${from} ${after === undefined ? "" : "and id > $2"}
        order by id limit ${sizeRows}`,
      after === undefined ? [workspace] : [workspace, after]
    )
    for (const group of groups(sized, pageRows)) {
      const text = `select ${columns} from ${from} and id = any($2::uuid[]) order by id`
      yield* use(yield* sql.unsafe<A>(text, [workspace, ids(group)]))
    }
    if (sized.length < sizeRows) return
    after = sized.at(-1)!.id
  }
})

/** The rows of a list of several prompts. */
const childrenOf = <A>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  { rows, alias, order }: ChildList,
  column: "prompt_id" | "id",
  values: ReadonlyArray<string>
): Effect.Effect<ReadonlyArray<A & Child>, SqlError> =>
  sql.unsafe<A & Child>(
    `${rows} and ${alias}.${column} = any($2::uuid[]) order by ${alias}.prompt_id, ${alias}.${order}, ${alias}.id`,
    [workspace, values]
  )

/** The bytes that each of these prompts has in a list; prompts without rows are left out. */
const bytesByPrompt = (sql: PgClient.PgClient, { list, bytes }: ChildList, prompts: ReadonlyArray<string>) =>
  Effect.map(
    sql.unsafe<Sized>(
      `select prompt_id as id, sum(${bytes})::float8 as bytes from ${list}
        where prompt_id = any($1::uuid[]) group by prompt_id`,
      [prompts]
    ),
    (rows) => new Map(rows.map(({ id, bytes }) => [id, bytes]))
  )

/** Hands a list of one prompt to `sink`, page by page. */
const exportChildren = Effect.fnUntraced(function* <E>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  prompt: string,
  child: ChildList,
  sink: (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>
) {
  const { list, order, bytes } = child
  for (let after: (Sized & { readonly rank: number }) | undefined; ; ) {
    const sized: ReadonlyArray<Sized & { readonly rank: number }> = yield* sql.unsafe<
      Sized & { readonly rank: number }
    >(
      `select id, ${order} as rank, ${bytes} as bytes from ${list}
        where prompt_id = $1 ${after === undefined ? "" : `and (${order}, id) > ($2, $3)`}
        order by ${order}, id limit ${sizeRows}`,
      after === undefined ? [prompt] : [prompt, after.rank, after.id]
    )
    for (const group of groups(sized, sizeRows)) {
      const rows = yield* childrenOf<object>(sql, workspace, child, "id", ids(group))
      yield* sink(rows.map(({ prompt_id: _, ...item }) => ({ list, item }) as never))
    }
    if (sized.length < sizeRows) return
    after = sized.at(-1)!
  }
})

const findWorkspace = Effect.fnUntraced(function* (sql: PgClient.PgClient, workspace: WorkspaceId) {
  const [found] = yield* sql.unsafe<Archive["workspace"]>(workspaceRow, [workspace])
  return found === undefined ? yield* Effect.fail(WorkspaceNotFound) : found
})

/**
 * Hands a workspace to `sink`, piece by piece in the archive's order: each list by id, versions by number, fragments by
 * position. To be run in a transaction, which sees one state from its first statement on.
 */
export const exportArchive = Effect.fnUntraced(function* <E>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  sink: (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>
) {
  yield* sink([{ list: "workspace", item: yield* findWorkspace(sql, workspace) }])
  for (const list of ["users", "api_keys", "folders", "tags", "fragments"] as const) {
    yield* eachPage(sql, workspace, list, (rows) => sink(rows.map((item) => ({ list, item }) as never)))
  }
  yield* eachPage(
    sql,
    workspace,
    "prompts",
    Effect.fnUntraced(function* (rows: ReadonlyArray<PromptRow>) {
      const tags = byPrompt(yield* sql.unsafe<never>(tagsOf, [workspace, ids(rows)]))
      const part = (row: PromptRow): ExportPart => ({
        list: "prompts",
        item: { ...row, tags: tags(row.id).map(({ id }) => id) }
      })
      const useBytes = yield* bytesByPrompt(sql, uses, ids(rows))
      const versionBytes = yield* bytesByPrompt(sql, versions, ids(rows))
      const sized = rows.map((row) => ({
        row,
        id: row.id,
        bytes: (useBytes.get(row.id) ?? 0) + (versionBytes.get(row.id) ?? 0)
      }))
      for (const group of groups(sized, pageRows)) {
        const [{ row, bytes }] = group as [(typeof group)[number]]
        if (bytes > pageBytes) {
          yield* sink([part(row)])
          yield* exportChildren(sql, workspace, row.id, uses, sink)
          yield* exportChildren(sql, workspace, row.id, versions, sink)
          continue
        }
        const usesIn = byPrompt(yield* childrenOf<never>(sql, workspace, uses, "prompt_id", ids(group)))
        const versionsIn = byPrompt(
          yield* childrenOf<never>(sql, workspace, versions, "prompt_id", ids(group))
        )
        yield* sink(
          group.flatMap(
            ({ row }): ReadonlyArray<ExportPart> => [
              part(row),
              ...usesIn(row.id).map((item) => ({ list: "prompt_fragments", item }) as const),
              ...versionsIn(row.id).map((item) => ({ list: "prompt_versions", item }) as const)
            ]
          )
        )
      }
    })
  )
})

/** Reads a workspace's content in its current state. To be run in a transaction that sees one state. */
export const readContent = Effect.fnUntraced(function* (sql: PgClient.PgClient, workspace: WorkspaceId) {
  yield* findWorkspace(sql, workspace)
  const lists = { folders: [], tags: [], fragments: [] } as {
    readonly [List in "folders" | "tags" | "fragments"]: Array<Archive[List][number]>
  }
  for (const list of ["folders", "tags", "fragments"] as const) {
    yield* eachPage(sql, workspace, list, (rows) =>
      Effect.sync(() => {
        for (const row of rows) lists[list].push(row as never)
      })
    )
  }
  const prompts: Array<CurrentPrompt> = []
  yield* eachPage(
    sql,
    workspace,
    "prompts",
    Effect.fnUntraced(function* (rows: ReadonlyArray<PromptRow>) {
      const tags = byPrompt(yield* sql.unsafe<never>(tagsOf, [workspace, ids(rows)]))
      const usesIn = byPrompt(yield* childrenOf<never>(sql, workspace, uses, "prompt_id", ids(rows)))
      const histories = new Map(
        (yield* sql.unsafe<HistoryRow>(historiesOf, [ids(rows)])).map((row) => [row.id, row])
      )
      for (const row of rows) {
        const { current_id, last_id, last_number } = histories.get(row.id)!
        prompts.push({
          ...row,
          tags: tags(row.id).map(({ id }) => id),
          fragments: usesIn(row.id),
          history: {
            current_id,
            last: last_id === null ? null : { id: last_id, version_number: last_number! }
          }
        })
      }
    })
  )
  return { ...lists, prompts } satisfies WorkspaceContent
})

interface HistoryRow {
  readonly id: string
  readonly current_id: VersionId | null
  readonly last_id: VersionId | null
  readonly last_number: number | null
}
