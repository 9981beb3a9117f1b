import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { describeError } from "../../../src/adapters/inbound/contract/Errors.ts"
import { authenticate, checkAccess, InvalidKey } from "../../../src/domain/ApiKey.ts"
import { resolve } from "../../../src/domain/Resolution.ts"
import type { World } from "./Changes.ts"

/**
 * The content of a resource, in parts that the service may read with separate statements. The list of prompts has two
 * parts: its items and their total. Every other resource has one part.
 */
export type Parts = ReadonlyArray<string>

/** The parts of a resource that does not exist. */
export const notFound: Parts = ["404"]

/** The state of a world: how the service treats each key, and what the resources of each workspace contain. */
export interface State {
  /** The workspace that each key may read, or the status and the message with which the key is rejected. */
  readonly admissions: ReadonlyArray<{ readonly workspace?: string; readonly rejection?: string }>
  /** The parts of each resource, by workspace and request target. An absent resource does not exist. */
  readonly contents: ReadonlyMap<string, ReadonlyMap<string, Parts>>
}

/** The fields that the oracle compares, by the kind of resource. */
const fields = {
  list: ["id", "title", "current_version"],
  item: ["title", "current_content", "current_version", "is_archived"],
  resolved: ["title", "resolved_content", "fragment_count"],
  versions: ["version_number", "change_summary"]
} as const
type Kind = keyof typeof fields

/** The target of the list, with every prompt on one page. */
export const listTarget = "/api/v1/prompts?per_page=100"

/** Returns the targets of the resources of a prompt. */
export const toTargets = (id: string): Readonly<Record<Exclude<Kind, "list">, string>> => ({
  item: `/api/v1/prompts/${id}`,
  resolved: `/api/v1/prompts/${id}/resolved`,
  versions: `/api/v1/prompts/${id}/versions?per_page=100`
})

/** Returns the parts of one or several rows. Bodies of responses have the same fields as rows of PostgreSQL. */
const describe = (kind: Kind, rows: object | ReadonlyArray<object>, total?: number): Parts => {
  const values = [rows]
    .flat()
    .map((row) => fields[kind].map((field) => (row as Record<string, unknown>)[field]))
  return kind === "list" ? [JSON.stringify(values), `${total} in total`] : [JSON.stringify([total, values])]
}

/** Returns the parts of the body of a 200 response. */
export const describeBody = (target: string, body: string): Parts => {
  const { data, meta } = JSON.parse(body)
  if (target === listTarget) return describe("list", data, meta.total)
  if (target.endsWith("/resolved")) return describe("resolved", data)
  return target.includes("/versions") ? describe("versions", data, meta.total) : describe("item", data)
}

type KeyRow = Parameters<typeof authenticate>[0] & { readonly id: string }

const toAdmission = (row: KeyRow | undefined): State["admissions"][number] => {
  const reject = (error: Parameters<typeof describeError>[0]) => {
    const { status, message } = describeError(error)
    return { rejection: `${status} ${message}` }
  }
  if (row === undefined) return reject(InvalidKey)
  const workspace = authenticate(row, 0)
  if (Result.isFailure(workspace)) return reject(workspace.failure)
  const error = checkAccess(workspace.success)
  return error === undefined ? { workspace: workspace.success.id } : reject(error)
}

/** A row with the columns of a prompt, and its fragments and versions. */
type PromptRow = Parameters<typeof resolve>[0] & {
  readonly workspace_id: string
  readonly is_archived: boolean
  readonly versions: ReadonlyArray<object>
}

const toContents = (prompts: ReadonlyArray<PromptRow>): ReadonlyMap<string, Parts> => {
  const listed = prompts.filter(({ is_archived }) => !is_archived)
  const contents = new Map([[listTarget, describe("list", listed, listed.length)]])
  for (const prompt of prompts) {
    const { item, resolved, versions } = toTargets(prompt.id)
    contents.set(item, describe("item", prompt))
    contents.set(resolved, describe("resolved", Result.getOrThrow(resolve(prompt))))
    contents.set(versions, describe("versions", prompt.versions, prompt.versions.length))
  }
  return contents
}

/** Returns the state of a world that the current transaction sees. No other transaction may change the world. */
export const readState = Effect.fnUntraced(function* (sql: PgClient, { workspaces, keys }: World) {
  const ids = keys.map(({ id }) => id)
  const keyRows = yield* sql<KeyRow>`select k.id, null as expires_at, k.revoked_at is not null as revoked,
      u.must_reset_password as owner_must_reset, to_json(w) as workspace
    from api_keys k join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id
    where ${sql.in("k.id", ids)}`
  const promptRows = yield* sql<PromptRow>`select p.*,
      (select coalesce(json_agg(to_jsonb(f) || to_jsonb(b) order by b.position, b.id), '[]')
        from prompt_fragments b join fragments f on f.id = b.fragment_id and f.workspace_id = p.workspace_id
        where b.prompt_id = p.id) as fragments,
      (select coalesce(json_agg(v order by v.version_number desc), '[]')
        from prompt_versions v where v.prompt_id = p.id) as versions
    from prompts p where ${sql.in("p.workspace_id", workspaces)} order by p.updated_at desc, p.id desc`
  return {
    admissions: ids.map((id) => toAdmission(keyRows.find((row) => row.id === id))),
    contents: new Map(
      workspaces.map((workspace) => [
        workspace,
        toContents(promptRows.filter(({ workspace_id }) => workspace_id === workspace))
      ])
    )
  } satisfies State
})
