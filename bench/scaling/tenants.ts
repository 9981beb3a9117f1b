import { hash } from "node:crypto"
import type { Stream } from "../load.ts"
import { page } from "../requests.ts"

/**
 * Workspaces of the same shape: an owner, a key, a fragment, and prompts that each have the fragment and one version.
 * Workspaces are numbered from 1, and so are the prompts of a workspace.
 */
export interface Tenants {
  /** A digit that the ids of the rows contain, different for every group of workspaces in a database. */
  readonly group: number
  readonly promptsEach: number
}

/** A request with the key of its workspace. */
export interface TenantRequest {
  readonly target: string
  readonly key: string
}

const kinds = { workspace: 1, user: 2, fragment: 3, prompt: 4 } as const
type Kind = keyof typeof kinds

const idPrefix = ({ group }: Tenants, kind: Kind): string => `${group}0000000-000${kinds[kind]}-4000-8000-`
const makeId = (tenants: Tenants, kind: Kind, index: number): string =>
  idPrefix(tenants, kind) + index.toString(16).padStart(12, "0")

const keySource = ({ group }: Tenants): string => `scaling ${group} `
const makeKey = (tenants: Tenants, tenant: number): string =>
  `key_live_${hash("sha256", `${keySource(tenants)}${tenant}`, "hex")}`

export const workspaceId = (tenants: Tenants, tenant: number): string => makeId(tenants, "workspace", tenant)

/** Returns the statements that insert the workspaces from the number `first` to the number `last`. */
export const makeStatements = (tenants: Tenants, first: number, last: number): ReadonlyArray<string> => {
  const { promptsEach } = tenants
  const sqlId = (kind: Kind, index: string) =>
    `('${idPrefix(tenants, kind)}' || lpad(to_hex(${index}), 12, '0'))::uuid`
  const [workspace, user, fragment] = [sqlId("workspace", "t"), sqlId("user", "t"), sqlId("fragment", "t")]
  const eachTenant = `from generate_series(${first}, ${last}) t`
  const index = `((t - 1)::bigint * ${promptsEach} + p)`
  const prompt = sqlId("prompt", index)
  const eachPrompt = `${eachTenant}, generate_series(1, ${promptsEach}) p`
  return [
    `insert into workspaces (id, name, tier) select ${workspace}, 'Workspace ' || t, 'team' ${eachTenant}`,
    `insert into users (id, email)
      select ${user}, 'owner-${tenants.group}-' || t || '@example.com' ${eachTenant}`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${workspace}, ${user},
        sha256(('key_live_' || encode(sha256(('${keySource(tenants)}' || t)::bytea), 'hex'))::bytea)
      ${eachTenant}`,
    `insert into fragments (id, workspace_id, name, content)
      select ${fragment}, ${workspace}, 'Style',
        'Answer in a {{tone}} tone, in {{ language }}. ' || repeat('Name your sources. ', 10) || t
      ${eachTenant}`,
    // Times are shuffled, so that the list has another order than the table.
    `insert into prompts (id, workspace_id, title, description, current_content, prompt_type, target_model, intent,
        created_at, updated_at)
      select ${prompt}, ${workspace}, 'Prompt ' || p, 'What prompt ' || p || ' is for, in a few words',
        'You are assistant ' || p || ' of {{company}}. ' || repeat('Answer briefly and to the point. ', 10),
        'system', 'model-large', 'support', timestamptz '2024-01-01Z',
        timestamptz '2024-01-01Z' + (${index} * 7919 % 1000000) * interval '1 minute'
      ${eachPrompt}`,
    `insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
      select ${prompt}, ${fragment}, 1, '{"tone": "friendly", "language": "English"}' ${eachPrompt}`,
    `insert into prompt_versions (prompt_id, version_number, content, change_summary, change_source, created_at)
      select ${prompt}, 1, 'You are assistant ' || p, 'First version', 'manual', timestamptz '2024-01-01Z'
      ${eachPrompt}`
  ]
}

/** Returns the request that reads the resolved content of a prompt. */
export const readPrompt = (tenants: Tenants, tenant: number, prompt = 1): TenantRequest => {
  const id = makeId(tenants, "prompt", (tenant - 1) * tenants.promptsEach + prompt)
  return { target: `/api/v1/prompts/${id}/resolved`, key: makeKey(tenants, tenant) }
}

export const readPage = (
  tenants: Tenants,
  tenant: number,
  number: number,
  perPage: number
): TenantRequest => ({
  target: page(number, perPage),
  key: makeKey(tenants, tenant)
})

let unknownParameters = 0
/** Returns the same request with a parameter that the service ignores, so that no cached response matches. */
export const withoutCache = ({ target, key }: TenantRequest): TenantRequest => ({
  target: `${target}${target.includes("?") ? "&" : "?"}unknown=${unknownParameters++}`,
  key
})

/** Returns a stream that sends the requests in their order, again from the start after the last one. */
export const toStream = (requests: ReadonlyArray<TenantRequest>, connections: number): Stream => ({
  connections,
  targets: requests.map(({ target }) => target),
  keys: requests.map(({ key }) => key),
  key: "",
  order: "in turn",
  expect: 200
})
