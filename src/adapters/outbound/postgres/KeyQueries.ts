import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { ApiKeyId, type KeyHash, type KeyRecord } from "../../../domain/ApiKey.ts"
import { paidTiers } from "../../../domain/Billing.ts"
import type { PromptId } from "../../../domain/Prompt.ts"
import { Timestamp } from "../../../domain/Timestamp.ts"
import type { Row, Statement } from "./connection/Query.ts"
import { selectSourceWhere } from "./PromptQueries.ts"
import { WorkspaceRow } from "./WorkspaceRows.ts"

/** Returns the workspaces of rows with `keyColumns`. */
const findWorkspaces = (rows: ReadonlyArray<Row>): ReadonlyArray<string | undefined> =>
  rows.map(({ workspace }) => (workspace as { readonly id: string } | null)?.id)

const keyColumns = `k.id, k.revoked_at is not null as revoked, k.expires_at, u.must_reset_password as owner_must_reset,
      case when w.id is not null
        then json_build_object('id', w.id, 'tier', w.tier, 'billing_status', w.billing_status)
      end as workspace`

/** Joins the owner and the workspace of the key `k`. */
const joinOwnerAndWorkspace =
  "join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id"

const selectKeysText = `select requested.ordinal::int, ${keyColumns}
    from unnest($1::text[]) with ordinality requested (key_hash, ordinal)
    join api_keys k on k.key_hash = decode(requested.key_hash, 'hex') ${joinOwnerAndWorkspace}`

/** Finds keys by their hashes, with the state of their owners and workspaces; `ordinal` is the position of the hash. */
export const selectKeysByHash = (hashes: ReadonlyArray<KeyHash>): Statement => ({
  text: selectKeysText,
  params: [`{${hashes.join()}}`],
  scope: { ids: hashes, rowCount: hashes.length, findWorkspaces }
})

/**
 * True if the states of the key, its owner and its workspace permit access. Only to avoid useless reads of prompts:
 * `Admission` decides, by the clock of the process.
 */
const mayBeAdmitted = `k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
        and not u.must_reset_password and w.billing_status = 'active'
        and w.tier in (${paidTiers.map((tier) => `'${tier}'`).join()})`

// OFFSET 0 makes PostgreSQL check the key before it reads the prompt.
const selectKeyWithSourceText = `select ${keyColumns}, source.id as prompt_id, source.title, source.prompt_type,
      source.target_model, source.current_content, source.current_version, source.contents, source.overrides
    from api_keys k ${joinOwnerAndWorkspace}
    left join lateral (
      ${selectSourceWhere(`${mayBeAdmitted} and candidate.workspace_id = w.id and candidate.id = $2`)} offset 0
    ) source on true
    where k.key_hash = decode($1, 'hex')`

/**
 * Finds a key by its hash, like `selectKeysByHash`, and the source of a prompt, like `selectSources`. `prompt_id` is null if
 * the key does not permit access, if its workspace has no such prompt, or if the prompt is large. PostgreSQL reads no
 * prompt for a key that does not permit access (specification 5.6).
 */
export const selectKeyWithSource = (hash: KeyHash, prompt: PromptId): Statement => ({
  text: selectKeyWithSourceText,
  params: [hash, prompt],
  scope: { ids: [hash], rowCount: 1, findWorkspaces }
})

/** Decodes a row of `selectKeysByHash` or `selectKeyWithSource`. */
export const decodeKeyRecord: (row: unknown) => KeyRecord = Schema.decodeUnknownSync(
  Schema.Struct({
    id: ApiKeyId,
    revoked: Schema.Boolean,
    expires_at: Schema.NullOr(Timestamp),
    owner_must_reset: Schema.Boolean,
    workspace: Schema.NullOr(WorkspaceRow.mapFields(Struct.omit(["name"])))
  })
)

/**
 * Writes when keys were last used; a time that is not later than the stored time changes nothing. Skips keys that
 * another transaction has locked: the other keys must not wait for that transaction.
 */
export const updateLastUsed = (uses: ReadonlyArray<readonly [id: ApiKeyId, usedAt: string]>): Statement => ({
  text: `update api_keys k set last_used_at = used.used_at
    from (
      select own.id, u.used_at
      from unnest($1::uuid[], $2::timestamptz[]) u (id, used_at) join api_keys own on own.id = u.id
      where own.last_used_at is null or own.last_used_at < u.used_at
      for no key update of own skip locked
    ) used
    where k.id = used.id`,
  params: [uses.map(([id]) => id), uses.map(([, usedAt]) => usedAt)]
})
