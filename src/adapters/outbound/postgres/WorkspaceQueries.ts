import type { NewKey, WorkspaceInfo } from "../../../application/ports/WorkspaceStore.ts"
import type { ApiKeyId, UserId } from "../../../domain/ApiKey.ts"
import type { BillingStatus, Tier } from "../../../domain/Billing.ts"
import type { Timestamp } from "../../../domain/Timestamp.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { Statement } from "./connection/Query.ts"
import { makeRowDecoder } from "./connection/RowDecoder.ts"
import { KeyInfoRow, UserRow, WorkspaceRow } from "./WorkspaceRows.ts"

const workspaceColumns = Object.keys(WorkspaceRow.fields).join(", ")
const userColumns = Object.keys(UserRow.fields).join(", ")
/** The columns of a key `k` and its owner `u`. */
const keyColumns = Object.keys(KeyInfoRow.fields)
  .map((column) => (column === "owner" ? "u.email as owner" : `k.${column}`))
  .join(", ")

/** Decodes the rows of `listWorkspaces`, `selectWorkspace` and `updateWorkspace`. */
export const decodeWorkspaces = makeRowDecoder(WorkspaceRow)

/** Decodes the rows of `listUsers` and `updateUser`. */
export const decodeUsers = makeRowDecoder(UserRow)

/** Decodes the rows of `listKeys` and `revokeKey`. */
export const decodeKeys = makeRowDecoder(KeyInfoRow)

/** The FROM clause that selects the owners `u` of the keys of workspace `$1`. */
export const fromKeyOwners =
  "users u where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1)"

/** Selects all workspaces. */
export const listWorkspaces: Statement = {
  text: `select ${workspaceColumns} from workspaces order by id`,
  params: []
}

/** Selects a workspace. */
export const selectWorkspace = (workspace: WorkspaceId): Statement => ({
  text: `select ${workspaceColumns} from workspaces where id = $1`,
  params: [workspace]
})

/** Selects one row without columns if the workspace exists. */
export const findWorkspace = (workspace: WorkspaceId): Statement => ({
  text: "select from workspaces where id = $1",
  params: [workspace]
})

/** Like `findWorkspace`; keeps the workspace from being deleted until the transaction ends. */
export const findAndLockWorkspace = (workspace: WorkspaceId): Statement => ({
  text: "select from workspaces where id = $1 for key share",
  params: [workspace]
})

/** Adds a workspace without content. */
export const insertWorkspace = ({ id, name, tier, billing_status }: WorkspaceInfo): Statement => ({
  text: "insert into workspaces (id, name, tier, billing_status) values ($1, $2, $3, $4)",
  params: [id, name, tier, billing_status]
})

/** Changes a workspace's tier and billing status, as far as they are given. */
export const updateWorkspace = (
  workspace: WorkspaceId,
  changes: { readonly tier?: Tier | undefined; readonly billing_status?: BillingStatus | undefined }
): Statement => ({
  text: `update workspaces set tier = coalesce($2, tier), billing_status = coalesce($3, billing_status)
    where id = $1 returning ${workspaceColumns}`,
  params: [workspace, changes.tier ?? null, changes.billing_status ?? null]
})

/** Selects the owners of a workspace's keys. */
export const listUsers = (workspace: WorkspaceId): Statement => ({
  text: `select ${userColumns} from ${fromKeyOwners} order by id`,
  params: [workspace]
})

/** Adds a user unless the email, compared without case, is taken. */
export const insertUser = (id: UserId, email: string): Statement => ({
  text: "insert into users (id, email) values ($1, $2) on conflict (lower(email)) do nothing",
  params: [id, email]
})

/** Changes whether a user must reset the password. */
export const updateUser = (email: string, mustResetPassword: boolean): Statement => ({
  text: `update users set must_reset_password = $2 where lower(email) = lower($1) returning ${userColumns}`,
  params: [email, mustResetPassword]
})

/** Selects the keys of a workspace. */
export const listKeys = (workspace: WorkspaceId): Statement => ({
  text: `select ${keyColumns} from api_keys k join users u on u.id = k.created_by
    where k.workspace_id = $1 order by k.id`,
  params: [workspace]
})

/** Adds a key whose owner is the user with an email. */
export const insertKey = (workspace: WorkspaceId, ownerEmail: string, key: NewKey): Statement => ({
  text: `insert into api_keys (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at)
    select $1, $2, u.id, $3, decode($4, 'hex'), $5, $6, $7 from users u where lower(u.email) = lower($8)`,
  params: [key.id, workspace, key.name, key.key_hash, key.key_start, key.key_end, key.created_at, ownerEmail]
})

/** Revokes a key; a key that is revoked already keeps its time. */
export const revokeKey = (id: ApiKeyId, at: Timestamp): Statement => ({
  text: `update api_keys k set revoked_at = coalesce(k.revoked_at, $2)
    from users u where k.id = $1 and u.id = k.created_by returning ${keyColumns}`,
  params: [id, at]
})
