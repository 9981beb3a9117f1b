import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { ApiKeyId, type KeyHash, type KeyRecord } from "../../../../domain/ApiKey.ts"
import { Timestamp } from "../../../../domain/Timestamp.ts"
import type { Statement } from "../driver/Query.ts"
import { WorkspaceRow } from "../workspaces/WorkspaceRows.ts"

const keyColumns = `k.id, k.revoked_at is not null as revoked, k.expires_at, u.must_reset_password as owner_must_reset,
      case when w.id is not null
        then json_build_object('id', w.id, 'tier', w.tier, 'billing_status', w.billing_status)
      end as workspace`

const joinOwnerAndWorkspace =
  "join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id"

const selectKeysText = `select requested.ordinal::int, ${keyColumns}
    from unnest($1::text[]) with ordinality requested (key_hash, ordinal)
    join api_keys k on k.key_hash = decode(requested.key_hash, 'hex') ${joinOwnerAndWorkspace}`

/**
 * Selects keys by their hashes, with the state of their owners and workspaces. `ordinal` is the position of a key's
 * hash, counted from 1.
 */
export const selectKeysByHash = (hashes: ReadonlyArray<KeyHash>): Statement => ({
  text: selectKeysText,
  params: [`{${hashes.join()}}`],
  expectedRows: hashes.length
})

/** Decodes a row of `selectKeysByHash`. */
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
 * Writes the times at which keys were last used. A time that is not later than the stored time is ignored. A key that
 * another transaction has locked is skipped, so that the other keys do not wait for that transaction.
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
