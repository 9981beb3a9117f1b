import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { isSqlError } from "effect/sql/SqlError"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import {
  Actor,
  KeyEnded,
  type KeyInfo,
  KeyNotFound,
  KeyUnassigned,
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceStore
} from "../../../../application/ports/WorkspaceStore.ts"
import {
  type ApiKeyId,
  endKey,
  isActive,
  keepLifetime,
  toReplacedName,
  type UserId
} from "../../../../domain/ApiKey.ts"
import type { AuditEntry } from "../../../../domain/AuditEvent.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { Database } from "../Database.ts"
import { exportWorkspace, readContent } from "./ContentReader.ts"
import {
  findFirst,
  findWorkspace,
  keyOwnersClause,
  type Reader,
  readEvents,
  readFolders,
  readKeys,
  readTags,
  readUsers,
  readWorkspaces,
  type StatementRunner
} from "./WorkspaceRows.ts"
import { type AuditRecorder, lockWorkspace, makeWriter } from "./WorkspaceWriter.ts"

/** Makes the audit entry for an action on a key. The details also contain the name and the owner of the key. */
const describeKey = (
  action: string,
  { id, workspace_id, name, owner }: Pick<KeyInfo, "id" | "workspace_id" | "name" | "owner">,
  details: AuditEntry["details"] = {}
): AuditEntry => ({ action, workspace_id, subject: id, details: { name, owner, ...details } })

const decodeRowsToDelete = Schema.decodeUnknownSync(
  Schema.Struct({ prompts: Schema.Int, api_keys: Schema.Int })
)

// The clauses that lock a selected row until the transaction ends.
/** Other transactions cannot delete the row. */
const keyShareLock = "for key share"
/** Other transactions cannot change or delete the row. */
const noKeyUpdateLock = "for no key update"
/** Other transactions cannot change or delete the row, or add rows that refer to it. */
const updateLock = "for update"

/** Provides the store with which operators administer workspaces, users and keys in PostgreSQL. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient | Actor> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const database = yield* Database
    const { queryReads, transact, handleSqlErrors } = database
    const sql = yield* PgClient.PgClient
    const actor = yield* Actor

    const record: AuditRecorder = ({ action, workspace_id, subject, details }) =>
      Effect.asVoid(
        sql`insert into audit_events (actor, action, workspace_id, subject, details)
          values (${actor}, ${action}, ${workspace_id}, ${subject}, ${JSON.stringify(details)}::text::jsonb)`
      )

    const inTransaction = <A, E>(work: Effect.Effect<A, E>) =>
      handleSqlErrors(transact("read committed", work))

    /** Runs reads that need no transaction. */
    const statements: StatementRunner<Unavailable> = {
      unsafe: (text, params = []) => queryReads({ text, params })
    }

    const readSnapshot = <A, E>(read: Effect.Effect<A, E>) =>
      handleSqlErrors(transact("repeatable read", read))

    const findUser = (email: string, lock: string) =>
      findFirst(readUsers(sql, `where lower(email) = lower($1) ${lock}`, [email]), UserNotFound)

    const findKey = (id: ApiKeyId, lock: string) =>
      findFirst(readKeys(sql, `where k.id = $1 ${lock}`, [id]), KeyNotFound)

    /** Lists rows of a workspace. In the clauses, `$1` is the workspace's id. Fails if the workspace does not exist. */
    const list = <A>(read: Reader<A>, id: WorkspaceId, clauses: string) =>
      Effect.andThen(findWorkspace(statements, id), read(statements, clauses, [id]))

    const updateKey = ({ id, name, revoked_at, expires_at }: KeyInfo) =>
      sql`update api_keys set name = ${name}, revoked_at = ${revoked_at}, expires_at = ${expires_at} where id = ${id}`

    /** Records the fields that differ between `before` and `after`. If no field differs, records nothing. */
    const recordChanges = <A extends AuditEntry["details"]>(entry: AuditEntry, before: A, after: A) => {
      const changes = Object.entries(after).filter(([name, value]) => value !== before[name])
      const details = { ...entry.details, ...Object.fromEntries(changes) }
      return changes.length === 0 ? Effect.void : record({ ...entry, details })
    }

    /**
     * Returns the user with this email, and locks the user against deletion, but not against changes. Adds the user if
     * no user has this email. Tries again if another transaction deletes the user after the insert.
     */
    const addOrLockUser = (newUserId: UserId, email: string) =>
      sql`insert into users ${sql.insert({ id: newUserId, email })} on conflict (lower(email)) do nothing`.pipe(
        Effect.andThen(findUser(email, keyShareLock)),
        Effect.retry({ until: isSqlError })
      )

    return WorkspaceStore.of({
      workspaces: readWorkspaces(statements, "order by id"),
      addWorkspace: Effect.fnUntraced(function* ({ id, name, tier, billing_status }) {
        yield* sql`insert into workspaces ${sql.insert({ id, name, tier, billing_status })}`
        yield* record({ action: "workspace.created", workspace_id: id, subject: name, details: { tier } })
      }, inTransaction),
      setWorkspace: Effect.fnUntraced(function* (id, { name, tier, billing_status }) {
        const before = yield* findWorkspace(sql, id, noKeyUpdateLock)
        const after = {
          ...before,
          name: name ?? before.name,
          tier: tier ?? before.tier,
          billing_status: billing_status ?? before.billing_status
        }
        yield* sql`update workspaces set ${sql.update(after, ["id"])} where id = ${id}`
        const entry = { action: "workspace.changed", workspace_id: id, subject: before.name, details: {} }
        yield* recordChanges(entry, before, after)
        return after
      }, inTransaction),
      deleteWorkspace: Effect.fnUntraced(function* (id: WorkspaceId) {
        // Waits for imports of the workspace. An import locks the workspace's rows in a different order, so without
        // this wait the two transactions could deadlock.
        yield* sql.unsafe(lockWorkspace, [id])
        const found = yield* findWorkspace(sql, id, updateLock)
        const [rowsToDelete] = yield* sql`
          select (select count(*)::int from prompts where workspace_id = ${id}) as prompts, count(*)::int as api_keys
          from (select from api_keys where workspace_id = ${id} order by id for update) k`
        const details = decodeRowsToDelete(rowsToDelete)
        yield* sql`delete from workspaces where id = ${id}`
        yield* record({ action: "workspace.deleted", workspace_id: id, subject: found.name, details })
        return { ...found, ...details }
      }, inTransaction),
      users: (id) => list(readUsers, id, keyOwnersClause),
      setUser: Effect.fnUntraced(function* (email, must_reset_password) {
        const before = yield* findUser(email, noKeyUpdateLock)
        const after = { ...before, must_reset_password }
        yield* sql`update users set must_reset_password = ${must_reset_password} where id = ${before.id}`
        const entry = { action: "user.changed", workspace_id: null, subject: before.email, details: {} }
        yield* recordChanges(entry, before, after)
        return after
      }, inTransaction),
      deleteUser: Effect.fnUntraced(function* (email, { now, withActiveKeys }) {
        const user = yield* findUser(email, updateLock)
        // Locks the keys in the order of their ids, like `deleteWorkspace`, so that the two deletions do not deadlock.
        const keys = yield* readKeys(sql, "where k.created_by = $1 order by k.id for update of k", [user.id])
        const active = keys.filter((key) => isActive(key, now)).length
        if (active > 0 && !withActiveKeys) return yield* new UserHasActiveKeys({ count: active })
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
        const before = yield* findKey(id, `${noKeyUpdateLock} of k`)
        const after = { ...before, revoked_at: before.revoked_at ?? at }
        yield* updateKey(after)
        yield* recordChanges(describeKey("key.revoked", before), before, after)
        return after
      }, inTransaction),
      rotateKey: Effect.fnUntraced(function* (id, replacement, endsAt) {
        // Locks the owner and the workspace before the key, as deletions do, so that the transactions do not deadlock.
        yield* sql`select from api_keys k join users u on u.id = k.created_by
          join workspaces w on w.id = k.workspace_id where k.id = ${id} for key share of u, w`
        const key = yield* findKey(id, `${noKeyUpdateLock} of k`)
        if (key.workspace_id === null) return yield* Effect.fail(KeyUnassigned)
        if (!isActive(key, Date.parse(replacement.created_at))) return yield* Effect.fail(KeyEnded)
        const { created_at, expires_at = keepLifetime(key, created_at) } = replacement
        yield* sql`insert into api_keys
          (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at, expires_at)
          select ${replacement.id}, workspace_id, created_by, name, decode(${replacement.key_hash}, 'hex'),
            ${replacement.key_start}, ${replacement.key_end}, ${created_at}, ${expires_at}
          from api_keys where id = ${id}`
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
      exportWorkspace: (workspace) => readSnapshot(exportWorkspace(sql, workspace)),
      readContent: (workspace) => readSnapshot(readContent(sql, workspace)),
      addKey: Effect.fnUntraced(function* (workspace, owner, key) {
        yield* findWorkspace(sql, workspace, keyShareLock)
        const { id, email } = yield* addOrLockUser(owner.newUserId, owner.email)
        const { expires_at } = key
        const row = { ...key, workspace_id: workspace, created_by: id, key_hash: `\\x${key.key_hash}` }
        yield* sql`insert into api_keys ${sql.insert(row)}`
        yield* record(describeKey("key.issued", { ...row, owner: email }, { expires_at }))
      }, inTransaction),
      auditEvents: ({ workspace, limit }) =>
        workspace === undefined
          ? readEvents(statements, "order by e.id desc limit $1::int", [limit])
          : readEvents(statements, "where workspace_id = $2 order by e.id desc limit $1::int", [
              limit,
              workspace
            ])
    })
  })
)
