import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Stream from "effect/Stream"
import type { SqlError } from "effect/sql/SqlError"
import type { Archive, ArchivePart, BadArchive } from "../../application/Archive.ts"
import type { Unavailable } from "../../application/Unavailable.ts"
import {
  type ContentEdit,
  editedPrompts,
  isEmptyEdit,
  type WorkspaceContent
} from "../../application/WorkspaceContent.ts"
import {
  type KeyInfo,
  KeyNotFound,
  type UserInfo,
  UserNotFound,
  type WorkspaceInfo,
  WorkspaceNotFound,
  WorkspaceStore
} from "../../application/WorkspaceStore.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import { Database } from "./Database.ts"
import { exportArchive, readContent } from "./exportArchive.ts"
import {
  importArchive,
  lockWorkspace,
  Raced,
  refuseOrRetry,
  spoolArchive,
  tryLockWorkspace,
  writeEdit
} from "./importArchive.ts"

/** Raised at the end of a dry run to roll the transaction back. */
const DryRun = { _tag: "DryRun" } as const

/** All the statements of a transaction see the state at the first. */
const oneState = "set transaction isolation level repeatable read"

/** How often an import is tried when concurrent transactions get in its way. */
const maxAttempts = 10

/** Runs the attempts of an import, each in a transaction of its own, which a dry run rolls back. */
const attempt = <A, E>(
  transact: Database["Service"]["transact"],
  dryRun: boolean,
  work: (number: number) => Effect.Effect<A, E | SqlError | Raced>
): Effect.Effect<A, Exclude<E, SqlError | Raced> | BadArchive | Unavailable> => {
  const run = (number: number): Effect.Effect<A, unknown> => {
    let result: A
    return transact(
      work(number).pipe(
        refuseOrRetry(number === maxAttempts),
        Effect.tap((value) => {
          result = value
          return dryRun ? Effect.fail(DryRun) : Effect.void
        })
      )
    ).pipe(
      Effect.catchIf(
        (error): error is typeof DryRun => error === DryRun,
        () => Effect.succeed(result)
      ),
      Effect.catchIf(
        (error): error is Raced => error === Raced,
        () => run(number + 1)
      )
    )
  }
  return run(1) as never
}

const importInto = Effect.fnUntraced(function* <E>(
  { transact }: Database["Service"],
  sql: PgClient.PgClient,
  archive: Archive | Stream.Stream<ArchivePart, E>,
  dryRun: boolean
) {
  const rows = yield* spoolArchive(archive)
  return yield* attempt(transact, dryRun, () => importArchive(sql, rows, dryRun))
}, Effect.scoped)

/** Locks prompts against changes until the transaction ends. */
const lockPrompts = "select from prompts where id = any($1::uuid[]) order by id for no key update"

/**
 * An attempt reads and writes in one snapshot: PostgreSQL refuses to write a row that has changed since. The prompts
 * that one attempt failed to write are locked by the next before anything is read, so that it will not fail again.
 */
const reviseIn = <A, E>(
  { transact }: Database["Service"],
  sql: PgClient.PgClient,
  workspace: WorkspaceId,
  revise: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
  dryRun: boolean
) => {
  let contested: ReadonlyArray<string> = []
  const waitForTurn = transact(sql.unsafe(lockWorkspace, [workspace]))
  const work = Effect.fnUntraced(function* () {
    yield* sql.unsafe(oneState)
    if (!dryRun) {
      const [turn] = yield* sql.unsafe<{ readonly locked: boolean }>(tryLockWorkspace, [workspace])
      if (turn?.locked !== true) return yield* Effect.fail(NotMyTurn)
      if (contested.length > 0) yield* sql.unsafe(lockPrompts, [contested])
    }
    const [edit, result] = yield* revise(yield* readContent(sql, workspace))
    contested = editedPrompts(edit)
    if (!isEmptyEdit(edit)) yield* writeEdit(sql, workspace, edit, dryRun)
    return result
  }, Effect.scoped)
  const run: Effect.Effect<A, E | WorkspaceNotFound | BadArchive | Unavailable> = Effect.catchIf(
    Effect.suspend(() => attempt(transact, dryRun, work)),
    (error): error is typeof NotMyTurn => error === NotMyTurn,
    () =>
      Effect.andThen(
        waitForTurn,
        Effect.suspend(() => run)
      )
  ) as never
  return run
}

/** Another import of the workspace is running. */
const NotMyTurn = { _tag: "NotMyTurn" } as const

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
  { read }: Database["Service"],
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
    const { read, transact } = database
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
        importInto(database, sql, archive, options?.dryRun === true)
      ),
      reviseContent: Effect.fn("WorkspaceStore.reviseContent")((workspace, revise, options) =>
        reviseIn(database, sql, workspace, revise, options?.dryRun === true)
      ),
      exportArchive: Effect.fn("WorkspaceStore.exportArchive")((workspace, sink) =>
        transact(Effect.andThen(sql.unsafe(`${oneState}, read only`), exportArchive(sql, workspace, sink)))
      ),
      readContent: Effect.fn("WorkspaceStore.readContent")((workspace) =>
        transact(Effect.andThen(sql.unsafe(`${oneState}, read only`), readContent(sql, workspace)))
      ),
      addKey: Effect.fn("WorkspaceStore.addKey")((...key) => transact(addKey(sql, ...key)))
    })
  })
)
