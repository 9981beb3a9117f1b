import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Actor } from "../../../../application/administration/Actor.ts"
import {
  KeyEnded,
  type KeyInfo,
  KeyNotFound,
  KeyUnassigned,
  type NewKey,
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceStore
} from "../../../../application/ports/WorkspaceStore.ts"
import { type ApiKeyId, endKey, isActive, keepLifetime, toReplacedName } from "../../../../domain/ApiKey.ts"
import type { AuditEntry } from "../../../../domain/AuditEvent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { Database } from "../Database.ts"
import { countRows } from "../driver/Query.ts"
import { exportWorkspace, readContent } from "../transfer/ContentReader.ts"
import { type AuditRecorder, lockWorkspace, makeWriter } from "../transfer/WorkspaceWriter.ts"
import {
  findFirst,
  findWorkspace,
  ofKeyOwners,
  type Reader,
  readEvents,
  readFolders,
  readKeys,
  readTags,
  readUsers,
  readWorkspaces
} from "./WorkspaceRows.ts"

/** Makes the audit entry for an action on a key. The details also contain the name and the owner of the key. */
const describeKey = (
  action: string,
  { id, workspace_id, name, owner }: Pick<KeyInfo, "id" | "workspace_id" | "name" | "owner">,
  details: AuditEntry["details"] = {}
): AuditEntry => ({ action, workspace_id, subject: id, details: { name, owner, ...details } })

/** Provides the store with which operators administer workspaces, users and keys in PostgreSQL. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient | Actor> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const database = yield* Database
    const { transact, handleSqlErrors } = database
    const sql = yield* PgClient.PgClient
    const actor = yield* Actor

    const record: AuditRecorder = ({ action, workspace_id, subject, details }) =>
      Effect.asVoid(
        sql`insert into audit_events (actor, action, workspace_id, subject, details)
          values (${actor}, ${action}, ${workspace_id}, ${subject}, ${JSON.stringify(details)}::text::jsonb)`
      )

    /** Runs `work` on one snapshot. If a concurrent transaction changes the same rows, `work` runs again. */
    const inTransaction = <A, E>(work: Effect.Effect<A, E>) =>
      handleSqlErrors(transact("repeatable read", work))

    const findUser = (email: string, lock = "") =>
      findFirst(readUsers(sql, `where lower(email) = lower($1) ${lock}`, [email]), UserNotFound)

    const findKey = (id: ApiKeyId) => findFirst(readKeys(sql, "where k.id = $1", [id]), KeyNotFound)

    /** Lists rows of a workspace, whose id is `$1`. Fails with `WorkspaceNotFound` if the workspace does not exist. */
    const list = <A>(read: Reader<A>, id: WorkspaceId, clauses: string) =>
      inTransaction(Effect.andThen(findWorkspace(sql, id), read(sql, clauses, [id])))

    /** Adds a key for the user with the email `owner`. */
    const insertKey = (workspace: WorkspaceId, owner: string, key: NewKey) =>
      sql`insert into api_keys
        (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at, expires_at)
        values (${key.id}, ${workspace}, (select id from users where email = ${owner}), ${key.name},
          decode(${key.key_hash}, 'hex'), ${key.key_start}, ${key.key_end}, ${key.created_at}, ${key.expires_at})`

    const updateKey = ({ id, name, revoked_at, expires_at }: KeyInfo) =>
      sql`update api_keys set name = ${name}, revoked_at = ${revoked_at}, expires_at = ${expires_at} where id = ${id}`

    /** Records the fields that differ between `before` and `after`. Records nothing if there are none. */
    const recordChanges = <A extends AuditEntry["details"]>(entry: AuditEntry, before: A, after: A) => {
      const changes = Object.entries(after).filter(([name, value]) => value !== before[name])
      const details = { ...entry.details, ...Object.fromEntries(changes) }
      return changes.length === 0 ? Effect.void : record({ ...entry, details })
    }

    return WorkspaceStore.of({
      workspaces: inTransaction(readWorkspaces(sql, "order by id")),
      addWorkspace: Effect.fnUntraced(function* ({ id, name, tier, billing_status }) {
        yield* sql`insert into workspaces (id, name, tier, billing_status)
          values (${id}, ${name}, ${tier}, ${billing_status})`
        yield* record({ action: "workspace.created", workspace_id: id, subject: name, details: { tier } })
      }, inTransaction),
      setWorkspace: Effect.fnUntraced(function* (id, { name = null, tier = null, billing_status = null }) {
        const before = yield* findWorkspace(sql, id)
        yield* sql`update workspaces set name = coalesce(${name}, name), tier = coalesce(${tier}, tier),
          billing_status = coalesce(${billing_status}, billing_status) where id = ${id}`
        const after = yield* findWorkspace(sql, id)
        const entry = { action: "workspace.changed", workspace_id: id, subject: before.name, details: {} }
        yield* recordChanges(entry, before, after)
        return after
      }, inTransaction),
      deleteWorkspace: Effect.fnUntraced(function* (id: WorkspaceId) {
        // Waits for imports of the workspace. An import locks the workspace's rows in a different order, so without
        // this wait the two transactions could deadlock.
        yield* sql.unsafe(lockWorkspace, [id])
        const found = yield* findWorkspace(sql, id)
        const details = {
          prompts: yield* countRows(sql`delete from prompts where workspace_id = ${id}`),
          api_keys: yield* countRows(sql`delete from api_keys where workspace_id = ${id}`)
        }
        yield* sql`delete from workspaces where id = ${id}`
        yield* record({ action: "workspace.deleted", workspace_id: id, subject: found.name, details })
        return { ...found, ...details }
      }, inTransaction),
      users: (id) => list(readUsers, id, ofKeyOwners),
      setUser: Effect.fnUntraced(
        function* (email, must_reset_password) {
          const before = yield* findUser(email, "for no key update")
          const after = { ...before, must_reset_password }
          yield* sql`update users set must_reset_password = ${must_reset_password} where id = ${before.id}`
          const entry = { action: "user.changed", workspace_id: null, subject: before.email, details: {} }
          yield* recordChanges(entry, before, after)
          return after
        },
        // With "repeatable read", the change would be notified to every workspace (`notify_owner`).
        (work) => handleSqlErrors(transact("read committed", work))
      ),
      deleteUser: Effect.fnUntraced(function* (email, { now, withActiveKeys }) {
        const user = yield* findUser(email)
        const keys = yield* readKeys(sql, "where k.created_by = $1 order by k.id", [user.id])
        const active = keys.filter((key) => isActive(key, now)).length
        if (active > 0 && !withActiveKeys) return yield* Effect.fail(UserHasActiveKeys(active))
        yield* sql`delete from api_keys where created_by = ${user.id}`
        yield* sql`delete from users where id = ${user.id}`
        const details = { api_keys: keys.length }
        yield* record({ action: "user.deleted", workspace_id: null, subject: user.email, details })
        for (const key of keys) yield* record(describeKey("key.deleted", key))
        return { ...user, ...details }
      }, inTransaction),
      keys: (id) => list(readKeys, id, "where k.workspace_id = $1 order by k.id"),
      folders: (id) => list(readFolders, id, 'where workspace_id = $1 order by name collate "C", id'),
      tags: (id) => list(readTags, id, 'where workspace_id = $1 order by name collate "C"'),
      revokeKey: Effect.fnUntraced(function* (id, at) {
        const before = yield* findKey(id)
        const after = { ...before, revoked_at: before.revoked_at ?? at }
        yield* updateKey(after)
        yield* recordChanges(describeKey("key.revoked", before), before, after)
        return after
      }, inTransaction),
      rotateKey: Effect.fnUntraced(function* (id, replacement, endsAt) {
        const key = yield* findKey(id)
        if (key.workspace_id === null) return yield* Effect.fail(KeyUnassigned)
        if (!isActive(key, Date.parse(replacement.created_at))) return yield* Effect.fail(KeyEnded)
        const { created_at, expires_at = keepLifetime(key, created_at) } = replacement
        yield* insertKey(key.workspace_id, key.owner, { ...replacement, name: key.name, expires_at })
        const replaced = { ...key, name: toReplacedName(key.name), ...endKey(key, endsAt, created_at) }
        yield* updateKey(replaced)
        yield* record(
          describeKey("key.rotated", key, {
            ends_at: replaced.revoked_at ?? replaced.expires_at,
            new_key: replacement.id,
            new_key_expires_at: expires_at
          })
        )
        return { replaced, expires_at }
      }, inTransaction),
      ...makeWriter(sql, database, record),
      recordExport: Effect.fnUntraced(function* (id, format) {
        const { name } = yield* findWorkspace(sql, id)
        yield* record({ action: "workspace.exported", workspace_id: id, subject: name, details: { format } })
      }, inTransaction),
      exportWorkspace: (workspace) => inTransaction(exportWorkspace(sql, workspace)),
      readContent: (workspace) => inTransaction(readContent(sql, workspace)),
      addKey: Effect.fnUntraced(function* (workspace, owner, key) {
        yield* findWorkspace(sql, workspace)
        const { email } = yield* Effect.catchTag(findUser(owner.email), "UserNotFound", () =>
          Effect.as(sql`insert into users (id, email) values (${owner.newUserId}, ${owner.email})`, owner)
        )
        yield* insertKey(workspace, email, key)
        const { expires_at } = key
        yield* record(
          describeKey("key.issued", { ...key, workspace_id: workspace, owner: email }, { expires_at })
        )
      }, inTransaction),
      auditEvents: ({ workspace = null, limit }) =>
        inTransaction(
          readEvents(sql, "where $1::uuid is null or workspace_id = $1 order by e.id desc limit $2::int", [
            workspace,
            limit
          ])
        )
    })
  })
)
