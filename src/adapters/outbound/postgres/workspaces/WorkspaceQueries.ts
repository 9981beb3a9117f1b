import * as Schema from "effect/Schema"
import type { NewKey, WorkspaceChanges, WorkspaceInfo } from "../../../../application/ports/WorkspaceStore.ts"
import type { ApiKeyId, KeyLifetime, UserId } from "../../../../domain/ApiKey.ts"
import type { Timestamp } from "../../../../domain/Timestamp.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { Statement } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../driver/RowDecoder.ts"
import { FolderRow, KeyInfoRow, TagRow, UserRow, WorkspaceRow } from "./WorkspaceRows.ts"

const workspaceColumns = Object.keys(WorkspaceRow.fields).join(", ")
const userColumns = Object.keys(UserRow.fields).join(", ")
/** The columns of a key `k` and its owner `u`. */
const keyColumns = Object.keys(KeyInfoRow.fields)
  .map((column) => (column === "owner" ? "u.email as owner" : `k.${column}`))
  .join(", ")

export const decodeWorkspaces = makeRowDecoder(WorkspaceRow)
export const decodeUsers = makeRowDecoder(UserRow)
export const decodeKeys = makeRowDecoder(KeyInfoRow)

/** The FROM clause that selects the owners `u` of the keys of workspace `$1`. */
export const fromKeyOwners =
  "users u where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1)"

export const selectWorkspaces: Statement = {
  text: `select ${workspaceColumns} from workspaces order by id`,
  params: []
}

/** The clauses that lock a selected row until the transaction ends. */
const rowLocks = {
  none: "",
  /** Other transactions cannot delete the row. */
  againstDeletion: "for key share",
  /** Other transactions cannot change or delete the row. */
  againstChanges: "for no key update",
  /** Other transactions cannot change or delete the row, or add rows that refer to it. */
  forDeletion: "for update"
} as const
type RowLock = keyof typeof rowLocks

export const selectWorkspace = (workspace: WorkspaceId, lock: RowLock = "none"): Statement => ({
  text: `select ${workspaceColumns} from workspaces where id = $1 ${rowLocks[lock]}`,
  params: [workspace]
})

export const insertWorkspace = ({ id, name, tier, billing_status }: WorkspaceInfo): Statement => ({
  text: "insert into workspaces (id, name, tier, billing_status) values ($1, $2, $3, $4)",
  params: [id, name, tier, billing_status]
})

/** Changes a workspace's name, tier and billing status. A field that is undefined does not change. */
export const updateWorkspace = (
  workspace: WorkspaceId,
  { name, tier, billing_status }: WorkspaceChanges
): Statement => ({
  text: `update workspaces set name = coalesce($2, name), tier = coalesce($3, tier),
      billing_status = coalesce($4, billing_status)
    where id = $1 returning ${workspaceColumns}`,
  params: [workspace, name ?? null, tier ?? null, billing_status ?? null]
})

/**
 * Counts the prompts and keys that the deletion of a workspace deletes. Locks the keys in the order of their ids. The
 * deletion of a user locks keys in the same order, so that the two deletions do not deadlock.
 */
export const countAndLockRowsToDelete = (workspace: WorkspaceId): Statement => ({
  text: `select (select count(*)::int from prompts where workspace_id = $1) as prompts, count(*)::int as api_keys
    from (select from api_keys where workspace_id = $1 order by id for update) k`,
  params: [workspace]
})

export const decodeRowsToDelete = makeFirstRowDecoder(
  Schema.Struct({ prompts: Schema.Int, api_keys: Schema.Int })
)

/** Deletes a workspace with its content and its keys. */
export const deleteWorkspace = (workspace: WorkspaceId): Statement => ({
  text: "delete from workspaces where id = $1",
  params: [workspace]
})

/** Selects the owners of a workspace's keys. */
export const selectUsers = (workspace: WorkspaceId): Statement => ({
  text: `select ${userColumns} from ${fromKeyOwners} order by id`,
  params: [workspace]
})

export const selectFolders = (workspace: WorkspaceId): Statement => ({
  text: `select id, name from folders where workspace_id = $1 order by name collate "C", id`,
  params: [workspace]
})

export const decodeFolders = makeRowDecoder(FolderRow)

export const selectTags = (workspace: WorkspaceId): Statement => ({
  text: `select id, name, color from tags where workspace_id = $1 order by name collate "C"`,
  params: [workspace]
})

export const decodeTags = makeRowDecoder(TagRow)

/** Adds a user. Does nothing if the email is taken; the comparison ignores case. */
export const insertUser = (id: UserId, email: string): Statement => ({
  text: "insert into users (id, email) values ($1, $2) on conflict (lower(email)) do nothing",
  params: [id, email]
})

export const selectUser = (email: string, lock: RowLock): Statement => ({
  text: `select ${userColumns} from users where lower(email) = lower($1) ${rowLocks[lock]}`,
  params: [email]
})

/** Deletes a user. The user's keys must be deleted first. */
export const deleteUser = (id: UserId): Statement => ({
  text: "delete from users where id = $1",
  params: [id]
})

export const updateUser = (email: string, mustResetPassword: boolean): Statement => ({
  text: `update users set must_reset_password = $2 where lower(email) = lower($1) returning ${userColumns}`,
  params: [email, mustResetPassword]
})

export const selectKeys = (workspace: WorkspaceId): Statement => ({
  text: `select ${keyColumns} from api_keys k join users u on u.id = k.created_by
    where k.workspace_id = $1 order by k.id`,
  params: [workspace]
})

export const selectKey = (id: ApiKeyId, lock: "none" | "againstChanges" = "none"): Statement => ({
  text: `select ${keyColumns} from api_keys k join users u on u.id = k.created_by where k.id = $1
    ${lock === "none" ? "" : `${rowLocks[lock]} of k`}`,
  params: [id]
})

/** Keeps the owner and the workspace of a key from being deleted until the transaction ends. */
export const lockKeyParents = (id: ApiKeyId): Statement => ({
  text: `select from api_keys k join users u on u.id = k.created_by join workspaces w on w.id = k.workspace_id
    where k.id = $1 for key share of u, w`,
  params: [id]
})

/** Selects the keys of a user. Locks the keys in the order of their ids, like `countAndLockRowsToDelete`. */
export const selectAndLockKeysOfUser = (id: UserId): Statement => ({
  text: `select ${keyColumns} from api_keys k join users u on u.id = k.created_by
    where k.created_by = $1 order by k.id for update of k`,
  params: [id]
})

export const deleteKeysOfUser = (id: UserId): Statement => ({
  text: "delete from api_keys where created_by = $1",
  params: [id]
})

const insertIntoKeys = `insert into api_keys
  (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at, expires_at)`

export const insertKey = (workspace: WorkspaceId, owner: UserId, key: NewKey): Statement => ({
  text: `${insertIntoKeys} values ($1, $2, $3, $4, decode($5, 'hex'), $6, $7, $8, $9)`,
  params: [
    key.id,
    workspace,
    owner,
    key.name,
    key.key_hash,
    key.key_start,
    key.key_end,
    key.created_at,
    key.expires_at
  ]
})

/** Adds a key with the workspace, the owner and the name of another key. */
export const insertReplacement = (replaced: ApiKeyId, key: Omit<NewKey, "name">): Statement => ({
  text: `${insertIntoKeys}
    select $2, workspace_id, created_by, name, decode($3, 'hex'), $4, $5, $6, $7 from api_keys where id = $1`,
  params: [replaced, key.id, key.key_hash, key.key_start, key.key_end, key.created_at, key.expires_at]
})

export const updateReplacedKey = (
  id: ApiKeyId,
  name: string,
  { revoked_at, expires_at }: KeyLifetime
): Statement => ({
  text: `update api_keys k set name = $2, revoked_at = $3, expires_at = $4
    from users u where k.id = $1 and u.id = k.created_by returning ${keyColumns}`,
  params: [id, name, revoked_at, expires_at]
})

export const revokeKey = (id: ApiKeyId, at: Timestamp): Statement => ({
  text: `update api_keys k set revoked_at = coalesce(k.revoked_at, $2)
    from users u where k.id = $1 and u.id = k.created_by returning ${keyColumns}`,
  params: [id, at]
})
