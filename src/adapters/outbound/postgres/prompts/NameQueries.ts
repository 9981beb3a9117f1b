import * as Schema from "effect/Schema"
import type { NamedPrompt } from "../../../../application/ports/PromptRepo.ts"
import { Prompt } from "../../../../domain/Prompt.ts"
import { type PromptReference, toIdRange, toName } from "../../../../domain/PromptName.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { AddParameter, Row } from "../driver/Query.ts"

// Each lookup by name reads the first row of an index at or after the requested values, and then compares the row with
// these values. With an equality instead of the row comparison, the generic plan could choose an index that has only the
// workspace, and read the whole workspace.

/** Selects the id of the prompt to which a slug belongs. The arguments are SQL expressions. */
const selectIdBySlug = (workspace: string, slug: string): string =>
  `select n.id from (
      select id, workspace_id, slug from prompts
      where not is_archived and (workspace_id, slug) >= (${workspace}, ${slug})
      order by workspace_id, slug, created_at, id limit 1
    ) n where n.workspace_id = ${workspace} and n.slug = ${slug}`

/**
 * Selects the id of the prompt to which a slug with digits belongs: the smallest id that has the slug and is at least
 * `first`. The arguments are SQL expressions.
 */
const selectIdByDigits = (workspace: string, slug: string, first: string): string =>
  `select n.id from (
      select id, workspace_id, slug from prompts
      where not is_archived and (workspace_id, slug, id) >= (${workspace}, ${slug}, ${first})
      order by workspace_id, slug, id limit 1
    ) n where n.workspace_id = ${workspace} and n.slug = ${slug}`

/** Returns the SQL expression of the id of a prompt. The value is null if no prompt of the workspace has the name. */
export const toIdExpression = (
  prompt: PromptReference,
  workspace: WorkspaceId,
  parameter: AddParameter
): string => {
  if (typeof prompt === "string") return `${parameter(prompt)}::uuid`
  const { slug, digits } = prompt
  const workspaceParam = `${parameter(workspace)}::uuid`
  const slugParam = `${parameter(slug)}::text`
  if (digits === undefined) return `(${selectIdBySlug(workspaceParam, slugParam)})`
  const { first, last } = toIdRange(digits)
  return `(${selectIdByDigits(workspaceParam, slugParam, `${parameter(first)}::uuid`)} and n.id <= ${parameter(last)}::uuid)`
}

/**
 * The FROM item `requested`, which has the ids of prompts of the workspaces `$1`. `$2` has the ids of the prompts. If
 * an id is null, `$3` has the slug. For a name with digits, `$4` and `$5` have the smallest and the largest id with
 * these digits; otherwise, both are null. `ordinal` is the position of a prompt in the arrays, counted from 1.
 */
export const requestedPrompts = `(
    select given.ordinal, given.workspace_id, case
        when given.id is not null then given.id
        when given.first is null then (${selectIdBySlug("given.workspace_id", "given.slug")})
        else (${selectIdByDigits("given.workspace_id", "given.slug", "given.first")} and n.id <= given.last)
      end as id
    from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[]) with ordinality
      given (workspace_id, id, slug, first, last, ordinal)
    offset 0
  ) requested`

/** The columns from which `decodeNamed` makes the names of the prompts `p`. */
export const nameColumns = `p.slug,
      coalesce(p.id = (${selectIdBySlug("p.workspace_id", "p.slug")}), false) as owns_slug,
      coalesce(p.id = (${selectIdByDigits("p.workspace_id", "p.slug", "rpad(left(p.id::text, 8), 32, '0')::uuid")}), false) as owns_digits`

const { id, title, description } = Prompt.fields

const decodeRows = Schema.decodeUnknownSync(
  Schema.Array(
    Schema.Struct({
      id,
      slug: Schema.String,
      owns_slug: Schema.Boolean,
      owns_digits: Schema.Boolean
    })
  )
)

/** Decodes the shortest name of each prompt. */
export const decodeNames = (rows: ReadonlyArray<Row>): ReadonlyArray<string> =>
  decodeRows(rows).map(({ id, slug, ...ownership }) => toName({ id, slug }, ownership))

const decodeTitles = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ id, title, description })))

/** Decodes prompts with their names. */
export const decodeNamed = (rows: ReadonlyArray<Row>): ReadonlyArray<NamedPrompt> => {
  const names = decodeNames(rows)
  return decodeTitles(rows).map((prompt, index) => ({ ...prompt, name: names[index] ?? "" }))
}
