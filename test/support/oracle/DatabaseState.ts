import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { describeError } from "../../../src/adapters/inbound/contract/Errors.ts"
import { type ApiKeyId, authenticate, checkAccess, InvalidKey } from "../../../src/domain/ApiKey.ts"
import type { BillingStatus } from "../../../src/domain/Billing.ts"
import type { PromptId, PromptType } from "../../../src/domain/Prompt.ts"
import { resolve } from "../../../src/domain/Resolution.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import {
  describeItem,
  describeList,
  describeResolved,
  describeVersions,
  listTarget,
  toTargets
} from "./Targets.ts"
import type { Admission, Parts, State } from "./Timeline.ts"
import type { World } from "./World.ts"

interface KeyRow {
  readonly id: ApiKeyId
  readonly revoked: boolean
  readonly owner_must_reset: boolean
  readonly workspace: {
    readonly id: WorkspaceId
    readonly tier: string
    readonly billing_status: BillingStatus
  } | null
}

interface PromptRow {
  readonly id: PromptId
  readonly workspace_id: string
  readonly title: string
  readonly current_content: string
  readonly current_version: number
  readonly is_archived: boolean
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly fragments: ReadonlyArray<{ readonly content: string; readonly variable_overrides: unknown }>
  readonly versions: ReadonlyArray<{ readonly version_number: number; readonly change_summary: string }>
}

/** Selects the keys of a world, and its prompts in the order of the list, from one snapshot. */
const selectState = `select json_build_object(
    'keys', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'revoked', k.revoked_at is not null, 'owner_must_reset', u.must_reset_password,
        'workspace', case when w.id is not null
          then json_build_object('id', w.id, 'tier', w.tier, 'billing_status', w.billing_status)
        end
      )), '[]')
      from api_keys k join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id
      where k.id = any($1::uuid[])
    ),
    'prompts', (
      select coalesce(json_agg(json_build_object(
        'id', p.id, 'workspace_id', p.workspace_id, 'title', p.title, 'current_content', p.current_content,
        'current_version', p.current_version, 'is_archived', p.is_archived, 'prompt_type', p.prompt_type,
        'target_model', p.target_model,
        'fragments', (
          select coalesce(json_agg(json_build_object(
            'content', f.content, 'variable_overrides', pf.variable_overrides
          ) order by pf.position, pf.id), '[]')
          from prompt_fragments pf
          join fragments f on f.id = pf.fragment_id and f.workspace_id = p.workspace_id
          where pf.prompt_id = p.id
        ),
        'versions', (
          select coalesce(json_agg(json_build_object(
            'version_number', v.version_number, 'change_summary', v.change_summary
          ) order by v.version_number desc), '[]')
          from prompt_versions v where v.prompt_id = p.id
        )
      ) order by p.updated_at desc, p.id desc), '[]')
      from prompts p where p.id = any($2::uuid[])
    )
  ) as state`

const toAdmission = (row: KeyRow | undefined): Admission => {
  const reject = (error: Parameters<typeof describeError>[0]): Admission => {
    const { status, message } = describeError(error)
    return { rejection: `${status} ${message}` }
  }
  if (row === undefined) return reject(InvalidKey)
  const workspace = authenticate({ ...row, expires_at: null }, 0)
  if (Result.isFailure(workspace)) return reject(workspace.failure)
  const error = checkAccess(workspace.success)
  return error === undefined ? { workspace: workspace.success.id } : reject(error)
}

const toContents = (prompts: ReadonlyArray<PromptRow>): ReadonlyMap<string, Parts> => {
  const listed = prompts.filter(({ is_archived }) => !is_archived)
  const contents = new Map<string, Parts>([[listTarget, describeList(listed, listed.length)]])
  for (const prompt of prompts) {
    const { item, resolved, versions } = toTargets(prompt.id)
    contents.set(item, describeItem(prompt))
    contents.set(resolved, describeResolved(Result.getOrThrow(resolve(prompt))))
    contents.set(versions, describeVersions(prompt.versions, prompt.versions.length))
  }
  return contents
}

/** Returns the state of a world that the current transaction sees. */
export const readState = (sql: PgClient, world: World) =>
  Effect.map(
    sql.unsafe<{ state: { keys: ReadonlyArray<KeyRow>; prompts: ReadonlyArray<PromptRow> } }>(selectState, [
      world.keys.map(({ id }) => id),
      world.prompts
    ]),
    ([row]): State => {
      const { keys, prompts } = row!.state
      return {
        admissions: world.keys.map(({ id }) => toAdmission(keys.find((key) => key.id === id))),
        contents: new Map(
          world.workspaces.map((workspace) => [
            workspace,
            toContents(prompts.filter(({ workspace_id }) => workspace_id === workspace))
          ])
        )
      }
    }
  )
