import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Actor } from "../../../../application/administration/Actor.ts"
import {
  KeyNotFound,
  KeyEnded,
  KeyUnassigned,
  UserHasActiveKeys,
  UserNotFound,
  WorkspaceNotFound,
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
import { decodeEvents, describeKey, findChanges, makeAuditRecorder, selectEvents } from "./AuditLog.ts"
import { execute, type Statement } from "../driver/Query.ts"
import type { RowDecoder } from "../driver/RowDecoder.ts"
import { importWorkspace } from "../transfer/WorkspaceImport.ts"
import { exportWorkspace, readContent } from "../transfer/ContentReader.ts"
import { editContent } from "../transfer/WorkspaceEdit.ts"
import { lockWorkspace, repeatableReadReadOnly } from "../transfer/WriteAttempts.ts"
import { Database } from "../Database.ts"
import * as queries from "./WorkspaceQueries.ts"

/** Provides the store with which operators administer workspaces, users and keys in PostgreSQL. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient | Actor> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const { queryPrompts: query, transact } = yield* Database
    const sql = yield* PgClient.PgClient
    const record = yield* makeAuditRecorder

    /** Runs a statement if the workspace exists. Fails with `WorkspaceNotFound` otherwise. */
    const queryWorkspace = Effect.fnUntraced(function* (workspace: WorkspaceId, statement: Statement) {
      const found = yield* query(queries.selectWorkspace(workspace))
      if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
      return yield* query(statement)
    })

    /** Runs a statement and returns its row. Fails with `notFound` if the statement returns no row. */
    const executeOne = Effect.fnUntraced(function* <A, E>(
      statement: Statement,
      decode: RowDecoder<A>,
      notFound: E
    ) {
      const [row] = decode(yield* execute(sql, statement))
      return row === undefined ? yield* Effect.fail(notFound) : row
    })

    /**
     * Changes one row and returns it. Records the fields that changed, if any. Fails with `notFound` if the row does not
     * exist.
     */
    const updateOne = <A extends AuditEntry["details"], E>(change: {
      /** Selects the row and locks it. */
      readonly select: Statement
      readonly update: Statement
      readonly decode: RowDecoder<A>
      readonly notFound: E
      readonly describe: (before: A) => AuditEntry
    }) =>
      transact(
        Effect.gen(function* () {
          const before = yield* executeOne(change.select, change.decode, change.notFound)
          const after = yield* executeOne(change.update, change.decode, change.notFound)
          const changes = findChanges(before, after)
          const entry = change.describe(before)
          if (Object.keys(changes).length > 0)
            yield* record({ ...entry, details: { ...entry.details, ...changes } })
          return after
        })
      )

    const readSnapshot = <A, E>(read: Effect.Effect<A, E>) =>
      transact(Effect.andThen(sql.unsafe(repeatableReadReadOnly), read))

    /** Returns the user with this email, and locks the user against deletion. Adds the user if there is none. */
    const addOrLockUser = Effect.fnUntraced(function* (newUserId: UserId, email: string) {
      for (;;) {
        yield* execute(sql, queries.insertUser(newUserId, email))
        const [user] = queries.decodeUsers(yield* execute(sql, queries.selectUser(email, "againstDeletion")))
        // If there is no user, another transaction deleted the user after the insert: try again.
        if (user !== undefined) return user
      }
    })

    const addKey = Effect.fnUntraced(function* (
      ...[workspace, owner, key]: Parameters<WorkspaceStore["Service"]["addKey"]>
    ) {
      const found = yield* execute(sql, queries.selectWorkspace(workspace, "againstDeletion"))
      if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
      const { id, email } = yield* addOrLockUser(owner.newUserId, owner.email)
      yield* execute(sql, queries.insertKey(workspace, id, key))
      const { expires_at } = key
      yield* record(
        describeKey("key.issued", { ...key, workspace_id: workspace, owner: email }, { expires_at })
      )
    })

    /**
     * Locks the owner and the workspace of a key before the key is locked. Deletions lock in the same order, so that
     * the transactions do not deadlock.
     */
    const lockKeyParents = Effect.fnUntraced(function* (id: ApiKeyId) {
      for (;;) {
        const locked = yield* execute(sql, queries.lockKeyParents(id))
        if (locked.length > 0) return
        const key = yield* executeOne(queries.selectKey(id), queries.decodeKeys, KeyNotFound)
        if (key.workspace_id === null) return yield* Effect.fail(KeyUnassigned)
        // The key has a workspace now, so another transaction added the key between the two statements: try again.
      }
    })

    const rotateKey = Effect.fnUntraced(function* (
      ...[id, replacement, endsAt]: Parameters<WorkspaceStore["Service"]["rotateKey"]>
    ) {
      yield* lockKeyParents(id)
      const key = yield* executeOne(queries.selectKey(id, "againstChanges"), queries.decodeKeys, KeyNotFound)
      if (!isActive(key, Date.parse(replacement.created_at))) return yield* Effect.fail(KeyEnded)
      const { created_at, expires_at = keepLifetime(key, created_at) } = replacement
      yield* execute(sql, queries.insertReplacement(id, { ...replacement, expires_at }))
      const lifetime = endKey(key, endsAt, created_at)
      const ended = yield* executeOne(
        queries.updateReplacedKey(id, toReplacedName(key.name), lifetime),
        queries.decodeKeys,
        KeyNotFound
      )
      yield* record(
        describeKey("key.rotated", key, {
          ends_at: ended.revoked_at ?? ended.expires_at,
          new_key: replacement.id,
          new_key_expires_at: expires_at
        })
      )
      return { replaced: ended, expires_at }
    })

    const deleteUser = Effect.fnUntraced(function* (
      ...[email, { now, withActiveKeys }]: Parameters<WorkspaceStore["Service"]["deleteUser"]>
    ) {
      const user = yield* executeOne(
        queries.selectUser(email, "forDeletion"),
        queries.decodeUsers,
        UserNotFound
      )
      const keys = queries.decodeKeys(yield* execute(sql, queries.selectAndLockKeysOfUser(user.id)))
      const active = keys.filter((key) => isActive(key, now)).length
      if (active > 0 && !withActiveKeys) return yield* Effect.fail(UserHasActiveKeys(active))
      yield* execute(sql, queries.deleteKeysOfUser(user.id))
      yield* execute(sql, queries.deleteUser(user.id))
      const api_keys = keys.length
      yield* record({
        action: "user.deleted",
        workspace_id: null,
        subject: user.email,
        details: { api_keys }
      })
      for (const key of keys) yield* record(describeKey("key.deleted", key))
      return { ...user, api_keys }
    })

    const deleteWorkspace = Effect.fnUntraced(function* (id: WorkspaceId) {
      // Waits for imports of the workspace. An import locks the workspace's rows in another order, so without this wait
      // the two transactions could deadlock.
      yield* sql.unsafe(lockWorkspace, [id])
      const found = yield* executeOne(
        queries.selectWorkspace(id, "forDeletion"),
        queries.decodeWorkspaces,
        WorkspaceNotFound
      )
      const counts = queries.decodeRowsToDelete(yield* execute(sql, queries.countAndLockRowsToDelete(id)))
      yield* execute(sql, queries.deleteWorkspace(id))
      yield* record({
        action: "workspace.deleted",
        workspace_id: id,
        subject: found.name,
        details: counts
      })
      return { ...found, ...counts }
    })

    return WorkspaceStore.of({
      workspaces: Effect.map(query(queries.selectWorkspaces), queries.decodeWorkspaces),
      addWorkspace: (workspace) =>
        transact(
          Effect.andThen(
            execute(sql, queries.insertWorkspace(workspace)),
            record({
              action: "workspace.created",
              workspace_id: workspace.id,
              subject: workspace.name,
              details: { tier: workspace.tier }
            })
          )
        ),
      setWorkspace: (id, changes) =>
        updateOne({
          select: queries.selectWorkspace(id, "againstChanges"),
          update: queries.updateWorkspace(id, changes),
          decode: queries.decodeWorkspaces,
          notFound: WorkspaceNotFound,
          describe: ({ name }) => ({
            action: "workspace.changed",
            workspace_id: id,
            subject: name,
            details: {}
          })
        }),
      deleteWorkspace: (id) => transact(deleteWorkspace(id)),
      users: (id) => Effect.map(queryWorkspace(id, queries.selectUsers(id)), queries.decodeUsers),
      setUser: (email, mustResetPassword) =>
        updateOne({
          select: queries.selectUser(email, "againstChanges"),
          update: queries.updateUser(email, mustResetPassword),
          decode: queries.decodeUsers,
          notFound: UserNotFound,
          describe: (user) => ({
            action: "user.changed",
            workspace_id: null,
            subject: user.email,
            details: {}
          })
        }),
      deleteUser: (...user) => transact(deleteUser(...user)),
      keys: (id) => Effect.map(queryWorkspace(id, queries.selectKeys(id)), queries.decodeKeys),
      folders: (id) => Effect.map(queryWorkspace(id, queries.selectFolders(id)), queries.decodeFolders),
      tags: (id) => Effect.map(queryWorkspace(id, queries.selectTags(id)), queries.decodeTags),
      revokeKey: (id, at) =>
        updateOne({
          select: queries.selectKey(id, "againstChanges"),
          update: queries.revokeKey(id, at),
          decode: queries.decodeKeys,
          notFound: KeyNotFound,
          describe: (key) => describeKey("key.revoked", key)
        }),
      rotateKey: (...key) => transact(rotateKey(...key)),
      importWorkspace: (archive, options) => importWorkspace(sql, transact, archive, options, record),
      editContent: (workspace, makeEdit, options) =>
        editContent(sql, transact, workspace, makeEdit, options, record),
      recordExport: (id, format) =>
        transact(
          Effect.flatMap(
            executeOne(queries.selectWorkspace(id), queries.decodeWorkspaces, WorkspaceNotFound),
            ({ name }) =>
              record({ action: "workspace.exported", workspace_id: id, subject: name, details: { format } })
          )
        ),
      exportWorkspace: (workspace) => readSnapshot(exportWorkspace(sql, workspace)),
      readContent: (workspace) => readSnapshot(readContent(sql, workspace)),
      addKey: (...key) => transact(addKey(...key)),
      auditEvents: (filter) => Effect.map(query(selectEvents(filter)), decodeEvents)
    })
  })
)
