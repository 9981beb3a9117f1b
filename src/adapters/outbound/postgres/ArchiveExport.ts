import type * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { ArchivePart, ArchivePrompt } from "../../../application/formats/Archive.ts"
import { WorkspaceNotFound } from "../../../application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../domain/Prompt.ts"

/** How many rows are read at once. */
const pageRows = 200

/** A tier that this program does not know is treated as Free, and an archive has no other word for it. */
const workspaceRow = `select id, name, case when tier in ('solo', 'team') then tier else 'free' end as tier,
  billing_status from workspaces where id = $1`

type OwnList = "users" | "api_keys" | "folders" | "tags" | "fragments"

/** Rows of a workspace after an id, in the order of their ids, as an archive has them. */
const pages: Record<OwnList | "prompts", string> = {
  users: `select id, email, must_reset_password from users u
    where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1) and id > $2`,
  api_keys: `select id, workspace_id, created_by, name, encode(key_hash, 'hex') as key_hash, key_start, key_end,
    created_at, revoked_at from api_keys where workspace_id = $1 and id > $2`,
  folders: "select id, name from folders where workspace_id = $1 and id > $2",
  tags: "select id, name, color from tags where workspace_id = $1 and id > $2",
  fragments: "select id, name, content from fragments where workspace_id = $1 and id > $2",
  prompts: `select id, title, description, current_content, prompt_type, target_model, intent, current_version,
    (select f.id from folders f where f.id = p.folder_id and f.workspace_id = p.workspace_id) as folder_id,
    is_favorite, is_archived, sort_order, created_at, updated_at
    from prompts p where workspace_id = $1 and id > $2`
}

/** What prompts have lists of; what points at another workspace's is left out, as every read leaves it out. */
const tagsOf = `select pt.prompt_id, t.id from prompt_tags pt join tags t on t.id = pt.tag_id
  where pt.prompt_id = any($2::uuid[]) and t.workspace_id = $1 order by t.id`
const usesOf = `select pf.prompt_id, pf.id, pf.fragment_id, pf.position, pf.variable_overrides
  from prompt_fragments pf join fragments f on f.id = pf.fragment_id
  where pf.prompt_id = any($2::uuid[]) and f.workspace_id = $1 order by pf.position, pf.id`
const versionsOf = `select v.prompt_id, v.id, v.version_number, v.content, v.change_summary, v.change_source,
  (select o.id from prompt_versions o where o.id = v.parent_version_id and o.prompt_id = v.prompt_id
    and o.version_number < v.version_number) as parent_version_id,
  v.metadata, v.created_at
  from prompt_versions v join prompts p on p.id = v.prompt_id
  where v.prompt_id = any($2::uuid[]) and p.workspace_id = $1 order by v.version_number`

const firstId = "00000000-0000-0000-0000-000000000000"

/** Rows by the prompt that they belong to, without its id. */
const byPrompt = <A>(rows: ReadonlyArray<A & { readonly prompt_id: string }>) => {
  const grouped = Map.groupBy(rows, ({ prompt_id }) => prompt_id)
  return (id: string): ReadonlyArray<A> =>
    (grouped.get(id) ?? []).map(({ prompt_id: _, ...row }) => row as unknown as A)
}

/**
 * Hands a workspace to `sink`, part by part in the archive's order: each list by id, versions by number, fragments by
 * position. To be run in a transaction, which sees one state from its first statement on.
 */
export const exportArchive = Effect.fnUntraced(function* <E>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  sink: (parts: ReadonlyArray<ArchivePart>) => Effect.Effect<void, E>
) {
  const [found] = yield* sql.unsafe<(ArchivePart & { list: "workspace" })["item"]>(workspaceRow, [workspace])
  if (found === undefined) return yield* Effect.fail(WorkspaceNotFound)
  yield* sink([{ list: "workspace", item: found }])

  const each = Effect.fnUntraced(function* <A extends { readonly id: string }, E2, R>(
    list: keyof typeof pages,
    use: (rows: ReadonlyArray<A>) => Effect.Effect<void, E2, R>
  ) {
    for (let after = firstId; ; ) {
      const rows = yield* sql.unsafe<A>(`${pages[list]} order by id limit ${pageRows}`, [workspace, after])
      if (rows.length > 0) yield* use(rows)
      if (rows.length < pageRows) return
      after = rows.at(-1)!.id
    }
  })

  for (const list of ["users", "api_keys", "folders", "tags", "fragments"] as const) {
    yield* each(list, (rows) => sink(rows.map((item) => ({ list, item }) as never)))
  }
  yield* each(
    "prompts",
    Effect.fnUntraced(function* (
      rows: ReadonlyArray<Omit<ArchivePrompt, "tags" | "fragments" | "versions">>
    ) {
      const params = [workspace, rows.map(({ id }) => id)]
      const tags = byPrompt(yield* sql.unsafe<never>(tagsOf, params))
      const uses = byPrompt(yield* sql.unsafe<never>(usesOf, params))
      const versions = byPrompt(yield* sql.unsafe<never>(versionsOf, params))
      yield* sink(
        rows.map((row) => ({
          list: "prompts",
          item: {
            ...row,
            tags: tags(row.id).map(({ id }) => id),
            fragments: uses(row.id),
            versions: versions(row.id)
          }
        }))
      )
    })
  )
})
