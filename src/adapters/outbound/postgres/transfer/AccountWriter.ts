import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { StoredKey, User, type WholeWorkspace, type Workspace } from "../../../../domain/Workspace.ts"
import { executeCounted } from "../driver/Query.ts"
import { findConflicts } from "./ContentWriter.ts"
import { makeUpsert, upsertRows } from "./Upsert.ts"

/** Adds a workspace. An existing workspace keeps its tier and its billing status. */
const insertWorkspace = `insert into workspaces (id, name, tier, billing_status) values ($1, $2, $3, $4)
  on conflict (id) do nothing`

/** Adds the workspace if it does not exist. Returns the number of added rows. */
export const addWorkspace = (sql: PgClient, { id, name, tier, billing_status }: Workspace) =>
  executeCounted(sql, { text: insertWorkspace, params: [id, name, tier, billing_status] })

const renameWorkspace = "update workspaces set name = $2 where id = $1 and name <> $2"

/** Adds users. An existing user keeps the email, and `must_reset_password` can only become true. */
const upsertUsers = makeUpsert("users", {
  columns: Object.keys(User.fields),
  updates: ["must_reset_password = true"],
  differs: (stored, given) => `${given}.must_reset_password and not ${stored}.must_reset_password`
})

/** Adds keys. An existing key can be renamed, be revoked and expire earlier; it keeps its hash, owner and workspace. */
const upsertKeys = makeUpsert("api_keys", {
  columns: Object.keys(StoredKey.fields),
  updates: [
    "name = excluded.name",
    "revoked_at = coalesce(t.revoked_at, excluded.revoked_at)",
    "expires_at = least(t.expires_at, excluded.expires_at)"
  ],
  differs: (stored, given) => `${given}.name <> ${stored}.name
    or (${stored}.revoked_at is null and ${given}.revoked_at is not null)
    or ${given}.expires_at < coalesce(${stored}.expires_at, 'infinity')`
})

/** Returns the row of a key, with the hash in PostgreSQL's hex format of `bytea`. */
const toKeyRow = (key: StoredKey): object => ({ ...key, key_hash: `\\x${key.key_hash}` })

const givenUsers = "json_populate_recordset(null::users, $1::json) with ordinality s"

/** Selects the users `$1` whose id or email belongs to another user. */
const conflictingUsers = `
  select s.ordinality as ordinal, 'id' as field, 'user' as owner from ${givenUsers} join users u on u.id = s.id
  where lower(u.email) <> lower(s.email)
  union all
  select s.ordinality, 'email', 'user' from ${givenUsers} join users u on lower(u.email) = lower(s.email)
  where u.id <> s.id`

const givenKeys = "json_populate_recordset(null::api_keys, $1::json) with ordinality s"

/**
 * Selects the keys `$1` whose id belongs to another workspace than `$2`, or whose hash belongs to another key. If a
 * stored key has no workspace, its id conflicts if the given key has a workspace or another owner.
 */
const conflictingKeys = `
  select s.ordinality as ordinal, 'id' as field, 'workspace' as owner
  from ${givenKeys} join api_keys k on k.id = s.id
  where k.workspace_id is distinct from $2
    and (k.workspace_id, k.created_by) is distinct from (s.workspace_id, s.created_by)
  union all
  select s.ordinality, 'key_hash', 'key' from ${givenKeys} join api_keys k on k.key_hash = s.key_hash
  where k.id <> s.id`

/** Finds the users and keys of an archive whose id, email or hash belongs to another user, workspace or key. */
export const findAccountConflicts = Effect.fnUntraced(function* (sql: PgClient, archive: WholeWorkspace) {
  const { workspace, users, api_keys } = archive
  const listPaths = (list: "users" | "api_keys") => archive[list].map((_, index) => `${list}[${index}]`)
  const keys = JSON.stringify(api_keys.map(toKeyRow))
  return [
    ...(yield* findConflicts(sql, conflictingUsers, [JSON.stringify(users)], listPaths("users"))),
    ...(yield* findConflicts(sql, conflictingKeys, [keys, workspace.id], listPaths("api_keys")))
  ]
})

/** Merges the users and keys of an archive and the name of its workspace. Returns how many rows were added and changed. */
export const mergeAccounts = Effect.fnUntraced(function* (
  sql: PgClient,
  { workspace: { id, name }, users, api_keys }: WholeWorkspace
) {
  const writtenUsers = yield* upsertRows(sql, upsertUsers, users)
  const writtenKeys = yield* upsertRows(sql, upsertKeys, api_keys.map(toKeyRow))
  const renamed = yield* executeCounted(sql, { text: renameWorkspace, params: [id, name] })
  return {
    added: writtenUsers.added + writtenKeys.added,
    changed: writtenUsers.changed + writtenKeys.changed + renamed
  }
})
