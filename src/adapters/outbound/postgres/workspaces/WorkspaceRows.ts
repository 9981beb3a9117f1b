import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Timestamp } from "../../../../domain/Timestamp.ts"
import { StoredKey, User, Workspace } from "../../../../domain/Workspace.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"

/** A row of `workspaces`. `tier` may be a tier that this program does not know. */
const WorkspaceRow = Workspace.mapFields(Struct.assign({ tier: Schema.String }))

const { id, workspace_id, name, key_start, key_end, created_at, expires_at, revoked_at } = StoredKey.fields

/** A row of `api_keys` as operators see it: without the hash, and with the email of the owner. */
const KeyInfoRow = Schema.Struct({
  id,
  workspace_id,
  name,
  key_start,
  key_end,
  owner: Schema.String,
  created_at,
  expires_at,
  last_used_at: Schema.NullOr(Timestamp),
  revoked_at
})

export const decodeWorkspaces = makeRowDecoder(WorkspaceRow)
export const decodeUsers = makeRowDecoder(User)
export const decodeKeys = makeRowDecoder(KeyInfoRow)

export const workspaceColumns = Object.keys(WorkspaceRow.fields).join(", ")
export const userColumns = Object.keys(User.fields).join(", ")
/** The columns of a key `k` and its owner `u`. */
export const keyColumns = Object.keys(KeyInfoRow.fields)
  .map((column) => (column === "owner" ? "u.email as owner" : `k.${column}`))
  .join(", ")

export const selectWorkspace = `select ${workspaceColumns} from workspaces where id = $1`

/** The FROM clause that selects the owners `u` of the keys of workspace `$1`. */
export const fromKeyOwners =
  "users u where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1)"
