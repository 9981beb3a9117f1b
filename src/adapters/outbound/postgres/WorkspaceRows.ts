import * as Schema from "effect/Schema"
import { ApiKeyId, KeyHash, UserId } from "../../../domain/ApiKey.ts"
import { BillingStatus } from "../../../domain/Billing.ts"
import { Timestamp } from "../../../domain/Timestamp.ts"
import { WorkspaceId } from "../../../domain/WorkspaceId.ts"

// The rows of workspaces, users and keys. Texts are not checked: a reader accepts what PostgreSQL has accepted.

/** A row of `workspaces`. `tier` may be a tier that this program does not know. */
export const WorkspaceRow = Schema.Struct({
  id: WorkspaceId,
  name: Schema.String,
  tier: Schema.String,
  billing_status: BillingStatus
})

/** A row of `users`. */
export const UserRow = Schema.Struct({
  id: UserId,
  email: Schema.String,
  must_reset_password: Schema.Boolean
})

/** A row of `api_keys` that belongs to a workspace, with the hash in hexadecimal digits. */
export const KeyRow = Schema.Struct({
  id: ApiKeyId,
  workspace_id: WorkspaceId,
  created_by: UserId,
  name: Schema.String,
  key_hash: KeyHash,
  key_start: Schema.String,
  key_end: Schema.String,
  created_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp)
})

const { id, name, key_start, key_end, created_at, revoked_at } = KeyRow.fields

/** A row of `api_keys` as operators see it: without the hash, and with the email of the owner. */
export const KeyInfoRow = Schema.Struct({
  id,
  name,
  key_start,
  key_end,
  owner: Schema.String,
  created_at,
  last_used_at: Schema.NullOr(Timestamp),
  revoked_at
})
