import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Timestamp } from "../../../../domain/Timestamp.ts"
import { Folder, StoredKey, User, Workspace, WorkspaceTag } from "../../../../domain/Workspace.ts"
import { WorkspaceId } from "../../../../domain/WorkspaceId.ts"

// These are the domain's schemas without the checks of texts, because PostgreSQL may contain texts that an import would
// reject.

/** A row of `workspaces`. `tier` may be a tier that this program does not know. */
export const WorkspaceRow = Workspace.mapFields(Struct.assign({ name: Schema.String, tier: Schema.String }))

export const FolderRow = Folder.mapFields(Struct.assign({ name: Schema.String }))

export const TagRow = WorkspaceTag.mapFields(Struct.assign({ name: Schema.String }))

export const UserRow = User.mapFields(Struct.assign({ email: Schema.String }))

/** A row of `api_keys` that belongs to a workspace, with the hash in hexadecimal digits. */
export const KeyRow = StoredKey.mapFields(
  Struct.assign({
    workspace_id: WorkspaceId,
    name: Schema.String,
    key_start: Schema.String,
    key_end: Schema.String
  })
)

const { id, name, key_start, key_end, created_at, revoked_at, expires_at } = KeyRow.fields

/** A row of `api_keys` as operators see it: without the hash, and with the email of the owner. */
export const KeyInfoRow = Schema.Struct({
  id,
  workspace_id: Schema.NullOr(WorkspaceId),
  name,
  key_start,
  key_end,
  owner: Schema.String,
  created_at,
  expires_at,
  last_used_at: Schema.NullOr(Timestamp),
  revoked_at
})
