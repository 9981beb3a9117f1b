import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Archive,
  type ArchivePart,
  archiveFromParts,
  type InvalidArchive
} from "../../../application/formats/Archive.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import {
  type KeyInfo,
  KeyNotFound,
  type UserInfo,
  UserNotFound,
  type WorkspaceInfo,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../../application/ports/WorkspaceStore.ts"
import type { WorkspaceId } from "../../../domain/Prompt.ts"
import { contentTables } from "./ContentTables.ts"
import { Database } from "./Database.ts"
import { exportArchive } from "./ArchiveExport.ts"
import { importArchive, isConstraintViolation, lock, toInvalidArchive } from "./ArchiveImport.ts"

/** What a dry run fails with in the end, so that its transaction is undone. */
const DryRun = { _tag: "DryRun" } as const
const isDryRun = (error: unknown): error is typeof DryRun => error === DryRun

/** Runs an import in a transaction, which a dry run undoes in the end. */
const unlessDry = <A, E>(
  transact: Database["Service"]["transact"],
  work: Effect.Effect<A, E | SqlError>,
  options: { readonly dryRun: boolean } | undefined
): Effect.Effect<A, E | InvalidArchive | Unavailable> => {
  let result: A
  return transact(
    work.pipe(
      Effect.catchIf(isConstraintViolation, (error) => Effect.fail(toInvalidArchive(error))),
      Effect.flatMap((value) => {
        result = value
        return options?.dryRun === true ? Effect.fail(DryRun) : Effect.succeed(value)
      })
    )
  ).pipe(Effect.catchIf(isDryRun, () => Effect.succeed(result))) as Effect.Effect<
    A,
    E | InvalidArchive | Unavailable
  >
}

/** All the statements of a transaction see the state at the first. */
const oneState = "set transaction isolation level repeatable read, read only"

/** Others may read, and wait to write. */
const lockContent = `lock table ${[...contentTables, "prompt_tags"]} in share row exclusive mode`

const reviseArchive = Effect.fnUntraced(function* <A, E>(
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  revise: (archive: Archive) => Effect.Effect<readonly [Archive, A], E>
) {
  yield* sql.unsafe(lock)
  yield* sql.unsafe(lockContent)
  const parts: Array<ArchivePart> = []
  yield* exportArchive(sql, workspace, (some) => Effect.sync(() => void parts.push(...some)))
  const [revised, result] = yield* revise(archiveFromParts(parts))
  yield* importArchive(sql, revised)
  return result
})

const addKey = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  ...[workspace, owner, key]: Parameters<WorkspaceStore["Service"]["addKey"]>
) {
  const found = yield* sql`select from workspaces where id = ${workspace} for key share`
  if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
  yield* sql`insert into users (id, email) values (${owner.newUserId}, ${owner.email})
    on conflict (lower(email)) do nothing`
  yield* sql`insert into api_keys (id, workspace_id, created_by, name, key_hash, key_start, key_end, created_at)
    select ${key.id}, ${workspace}, u.id, ${key.name}, decode(${key.key_hash}, 'hex'), ${key.key_start},
      ${key.key_end}, ${key.created_at}
    from users u where lower(u.email) = lower(${owner.email})`
})

const workspaceColumns = "id, name, tier, billing_status"
const userColumns = "id, email, must_reset_password"
const keyColumns = `k.id, k.name, k.key_start, k.key_end, u.email as owner, k.created_at, k.last_used_at, k.revoked_at`

/** Finds out whether there is a workspace, and no more where there isn't. */
const existing = Effect.fnUntraced(function* (
  { queryPrompts: read }: Database["Service"],
  workspace: WorkspaceId,
  text: string
) {
  const found = yield* read({ text: "select from workspaces where id = $1", params: [workspace] })
  if (found.length === 0) return yield* Effect.fail(WorkspaceNotFound)
  return yield* read({ text, params: [workspace] })
})

const workspaces = { text: `select ${workspaceColumns} from workspaces order by id`, params: [] }
const usersOf = `select ${userColumns} from users u
  where exists (select from api_keys k where k.created_by = u.id and k.workspace_id = $1) order by id`
const keysOf = `select ${keyColumns} from api_keys k join users u on u.id = k.created_by
  where k.workspace_id = $1 order by k.id`

const setWorkspace = `update workspaces
  set tier = coalesce($2, tier), billing_status = coalesce($3, billing_status)
  where id = $1 returning ${workspaceColumns}`
const setUser = `update users set must_reset_password = $2 where lower(email) = lower($1) returning ${userColumns}`
const revokeKey = `update api_keys k set revoked_at = coalesce(k.revoked_at, $2)
  from users u where k.id = $1 and u.id = k.created_by returning ${keyColumns}`

/** The row that a change gives, or that there is nothing to change. */
const changed = <A extends object, E>(
  sql: PgClient.PgClient,
  text: string,
  params: ReadonlyArray<unknown>,
  notFound: E
): Effect.Effect<A, E | SqlError> =>
  Effect.flatMap(sql.unsafe<A>(text, params), ([row]) =>
    row === undefined ? Effect.fail(notFound) : Effect.succeed(row)
  )

/** What operators change, in PostgreSQL. */
export const layer: Layer.Layer<WorkspaceStore, never, Database | PgClient.PgClient> = Layer.effect(
  WorkspaceStore,
  Effect.gen(function* () {
    const database = yield* Database
    const { queryPrompts: read, transact } = database
    const sql = yield* PgClient.PgClient
    return WorkspaceStore.of({
      workspaces: Effect.map(read(workspaces), (rows) => rows as unknown as ReadonlyArray<WorkspaceInfo>),
      addWorkspace: Effect.fn("WorkspaceStore.addWorkspace")(({ id, name, tier, billing_status }) =>
        transact(
          sql.unsafe(`insert into workspaces (${workspaceColumns}) values ($1, $2, $3, $4)`, [
            id,
            name,
            tier,
            billing_status
          ])
        )
      ),
      setWorkspace: Effect.fn("WorkspaceStore.setWorkspace")((id, { tier, billing_status }) =>
        transact(
          changed<WorkspaceInfo, WorkspaceNotFound>(
            sql,
            setWorkspace,
            [id, tier ?? null, billing_status ?? null],
            WorkspaceNotFound
          )
        )
      ),
      users: Effect.fn("WorkspaceStore.users")((id) =>
        Effect.map(existing(database, id, usersOf), (rows) => rows as unknown as ReadonlyArray<UserInfo>)
      ),
      setUser: Effect.fn("WorkspaceStore.setUser")((email, must_reset_password) =>
        transact(changed<UserInfo, UserNotFound>(sql, setUser, [email, must_reset_password], UserNotFound))
      ),
      keys: Effect.fn("WorkspaceStore.keys")((id) =>
        Effect.map(existing(database, id, keysOf), (rows) => rows as unknown as ReadonlyArray<KeyInfo>)
      ),
      revokeKey: Effect.fn("WorkspaceStore.revokeKey")((id, at) =>
        transact(changed<KeyInfo, KeyNotFound>(sql, revokeKey, [id, at], KeyNotFound))
      ),
      importArchive: Effect.fn("WorkspaceStore.importArchive")((archive, options) =>
        unlessDry(transact, importArchive(sql, archive), options)
      ),
      reviseArchive: Effect.fn("WorkspaceStore.reviseArchive")((workspace, revise, options) =>
        unlessDry(transact, reviseArchive(sql, workspace, revise), options)
      ),
      exportArchive: Effect.fn("WorkspaceStore.exportArchive")((workspace, sink) =>
        transact(Effect.andThen(sql.unsafe(oneState), exportArchive(sql, workspace, sink)))
      ),
      addKey: Effect.fn("WorkspaceStore.addKey")((...key) => transact(addKey(sql, ...key)))
    })
  })
)
