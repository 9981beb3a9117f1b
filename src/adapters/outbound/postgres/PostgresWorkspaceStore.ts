import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  KeyNotFound,
  UserNotFound,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { execute, type Statement } from "./connection/Query.ts"
import type { RowDecoder } from "./connection/RowDecoder.ts"
import { exportWorkspace } from "./content/WorkspaceExport.ts"
import { importWorkspace } from "./content/WorkspaceImport.ts"
import { readContent } from "./content/ContentReader.ts"
import { reviseContent } from "./content/ContentRevision.ts"
import { repeatableReadReadOnly } from "./content/IsolationLevels.ts"
import { Database } from "./Database.ts"
import * as queries from "./WorkspaceQueries.ts"

/** The workspaces, users and keys in PostgreSQL, as operators administer them. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const { queryPrompts: query, transact } = yield* Database
    const sql = yield* PgClient.PgClient

    /** Runs a statement if the workspace exists. */
    const queryWorkspace = Effect.fnUntraced(function* (workspace: WorkspaceId, statement: Statement) {
      const found = yield* query(queries.findWorkspace(workspace))
      if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
      return yield* query(statement)
    })

    /** Changes one row and returns it; fails if there is no such row. */
    const updateOne = <A, E>(statement: Statement, decode: RowDecoder<A>, notFound: E) =>
      transact(
        Effect.flatMap(execute(sql, statement), (rows) => {
          const [row] = decode(rows)
          return row === undefined ? Effect.fail(notFound) : Effect.succeed(row)
        })
      )

    /** Runs reads in one transaction that sees one state of the database. */
    const readSnapshot = <A, E>(read: Effect.Effect<A, E>) =>
      transact(Effect.andThen(sql.unsafe(repeatableReadReadOnly), read))

    const addKey = Effect.fnUntraced(function* (
      ...[workspace, owner, key]: Parameters<WorkspaceStore["Service"]["addKey"]>
    ) {
      const found = yield* execute(sql, queries.findAndLockWorkspace(workspace))
      if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
      yield* execute(sql, queries.insertUser(owner.newUserId, owner.email))
      yield* execute(sql, queries.insertKey(workspace, owner.email, key))
    })

    return WorkspaceStore.of({
      workspaces: Effect.map(query(queries.listWorkspaces), queries.decodeWorkspaces),
      addWorkspace: Effect.fn("WorkspaceStore.addWorkspace")((workspace) =>
        transact(execute(sql, queries.insertWorkspace(workspace)))
      ),
      setWorkspace: Effect.fn("WorkspaceStore.setWorkspace")((id, changes) =>
        updateOne(queries.updateWorkspace(id, changes), queries.decodeWorkspaces, WorkspaceNotFound)
      ),
      users: Effect.fn("WorkspaceStore.users")((id) =>
        Effect.map(queryWorkspace(id, queries.listUsers(id)), queries.decodeUsers)
      ),
      setUser: Effect.fn("WorkspaceStore.setUser")((email, mustResetPassword) =>
        updateOne(queries.updateUser(email, mustResetPassword), queries.decodeUsers, UserNotFound)
      ),
      keys: Effect.fn("WorkspaceStore.keys")((id) =>
        Effect.map(queryWorkspace(id, queries.listKeys(id)), queries.decodeKeys)
      ),
      revokeKey: Effect.fn("WorkspaceStore.revokeKey")((id, at) =>
        updateOne(queries.revokeKey(id, at), queries.decodeKeys, KeyNotFound)
      ),
      importWorkspace: Effect.fn("WorkspaceStore.importWorkspace")((parts, options) =>
        importWorkspace(sql, transact, parts, options?.dryRun === true)
      ),
      reviseContent: Effect.fn("WorkspaceStore.reviseContent")((workspace, revise, options) =>
        reviseContent(sql, transact, workspace, revise, options?.dryRun === true)
      ),
      exportWorkspace: Effect.fn("WorkspaceStore.exportWorkspace")((workspace, sink) =>
        readSnapshot(exportWorkspace(sql, workspace, sink))
      ),
      readContent: Effect.fn("WorkspaceStore.readContent")((workspace) =>
        readSnapshot(readContent(sql, workspace))
      ),
      addKey: Effect.fn("WorkspaceStore.addKey")((...key) => transact(addKey(...key)))
    })
  })
)
