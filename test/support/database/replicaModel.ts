import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { Query, Row, Statement } from "../../../src/adapters/outbound/postgres/driver/Query.ts"
import { Fence } from "../../../src/adapters/outbound/postgres/replica/Fence.ts"
import { ReadRouter } from "../../../src/adapters/outbound/postgres/replica/ReadRouter.ts"
import type { ReplicaInUse, ReplicaSession } from "../../../src/adapters/outbound/postgres/replica/Replica.ts"
import type { StandbyState } from "../../../src/adapters/outbound/postgres/replica/ServerState.ts"
import { Unavailable } from "../../../src/application/ports/Unavailable.ts"
import { WorkspaceRevisions } from "../../../src/application/freshness/WorkspaceRevisions.ts"
import { makeRandom } from "../random.ts"

// A model of the primary, the two standbys and the change feed that a router uses. The steps of the model are random.

const workspaces = ["a", "b", "c"]

/** A commit in the WAL, which sets a workspace to a version. */
interface Commit {
  readonly workspace: string
  readonly version: number
}

/** An entry of the notification queue of the primary: a commit by its index in the WAL, or a marker. */
type Queued = { readonly commit: number } | { readonly marker: string }

/** A statement on its way to a server, or a result on its way back. */
interface PendingStatement {
  readonly server: number
  readonly statement: Statement
  readonly resume: (exit: Exit.Exit<ReadonlyArray<Row>, Unavailable>) => void
  rows: ReadonlyArray<Row> | undefined
  isCommitted: boolean
}

/** A standby: the state that the router uses, and the real state. */
interface ModelReplica {
  usable: ReplicaInUse | undefined
  /** The number of commits that the standby has replayed. */
  replayed: number
}

/** A read of a caller. */
interface ModelRead {
  readonly workspace: string
  /** The oldest version that the caller may see. */
  readonly floor: number
  /** The version on the primary when the read started. Undefined if the primary was down then or during the read. */
  latest: number | undefined
  /** True if the caller must see `latest` or a newer version, because the feed was down at the start. */
  readonly mustBeLatest: boolean
}

const primaryServer = -1
const lineage = "lineage"

/** Runs random steps. Returns the violations of the rules, and how often each kind of read happened. */
export const runReplicaModel = async (seed: number, steps: number) => {
  const { int, pick } = makeRandom(seed)
  const problems: Array<string> = []
  const counts = { replica: 0, primary: 0, fenced: 0, repeated: 0 }

  const wal: Array<Commit> = []
  /** The commit that is in the WAL but not yet visible on the primary. */
  let committing: number | undefined
  let isPrimaryUp = true
  let queue: Array<Queued> = []
  let isFeedUp = true
  let pending: Array<PendingStatement> = []
  let running: Array<ModelRead> = []
  const told = new Map<string, number>()
  const shown = new Map<string, number>()
  let polls: Array<{
    readonly replica: ModelReplica
    readonly session: ReplicaSession
    readonly state: StandbyState
  }> = []

  const revisions = new WorkspaceRevisions()

  const versionAt = (workspace: string, position: number): number =>
    wal.slice(0, position).findLast((commit) => commit.workspace === workspace)?.version ?? 0
  const visiblePosition = () => committing ?? wal.length

  const makeServer =
    (server: number): Query =>
    (statement) =>
      Effect.callback((resume) => {
        pending.push({
          server,
          statement,
          resume: (exit) => resume(exit),
          rows: undefined,
          isCommitted: false
        })
      })
  const makeSession = (server: number): ReplicaSession => ({
    queryPrompts: makeServer(server),
    queryKeys: makeServer(server)
  })
  const makeState = ({ replayed }: { readonly replayed: number }): StandbyState => ({
    position: BigInt(replayed),
    lineage,
    server: "standby",
    sinceLastMs: 0
  })
  const replicas: ReadonlyArray<ModelReplica> = [0, 1].map((server) => ({
    usable: { session: makeSession(server), state: makeState({ replayed: 0 }) },
    replayed: 0
  }))
  let active = replicas[0]!

  const primary = makeSession(primaryServer)
  const fence = new Fence(makeServer(primaryServer), revisions, 0)
  const router = new ReadRouter({
    revisions,
    fence,
    primary,
    findReplica: () => active.usable,
    isFeedUp: () => isFeedUp,
    metrics: {
      countReplica: () => counts.replica++,
      countPrimary: () => counts.primary++,
      countFenced: () => counts.fenced++,
      countRepeated: () => counts.repeated++
    }
  })
  const markers = Effect.runFork(fence.run)

  const startRead = () => {
    const workspace = pick(workspaces)
    const pool = pick<keyof ReplicaSession>(["queryPrompts", "queryKeys"])
    const statement: Statement = { text: workspace, params: [], ...(int(8) > 0 && { expectedRows: 1 }) }
    const read: ModelRead = {
      workspace,
      floor: Math.max(told.get(workspace) ?? 0, shown.get(workspace) ?? 0),
      latest: isPrimaryUp ? versionAt(workspace, visiblePosition()) : undefined,
      mustBeLatest: !isFeedUp
    }
    running.push(read)
    Effect.runFork(router.run(pool, statement)).addObserver((exit) => {
      running = running.filter((other) => other !== read)
      if (Exit.isFailure(exit)) return
      const version = (exit.value[0]?.version as number | undefined) ?? 0
      if (version < read.floor) problems.push(`${workspace}: version ${version} after ${read.floor}`)
      if (version === 0 && (read.latest ?? 0) > 0)
        problems.push(`${workspace}: not found, although it exists`)
      if (read.mustBeLatest && version < (read.latest ?? 0))
        problems.push(`${workspace}: version ${version} of ${read.latest} while changes go unreported`)
      shown.set(workspace, Math.max(shown.get(workspace) ?? 0, version))
    })
  }

  const failStatements = (server: number) => {
    const failed = pending.filter((statement) => statement.server === server)
    pending = pending.filter((statement) => statement.server !== server)
    for (const { resume } of failed) resume(Exit.fail(Unavailable))
  }

  /** Lets a server run a statement, or lets the result of a statement arrive. */
  const advanceStatement = () => {
    if (pending.length === 0) return
    const statement = pick(pending)
    const { server, resume } = statement
    const { params } = statement.statement
    const isMarker = params.length > 0
    if (statement.rows === undefined) {
      const workspace = statement.statement.text
      const position = server === primaryServer ? visiblePosition() : replicas[server]!.replayed
      const version = versionAt(workspace, position)
      if (isMarker) statement.rows = [{ position: String(wal.length), lineage } as unknown as Row]
      else statement.rows = version === 0 ? [] : [{ workspace, version } as unknown as Row]
    } else if (isMarker && !statement.isCommitted) {
      // PostgreSQL commits notifying transactions one at a time, so a marker waits for the commit in progress.
      if (committing !== undefined) return
      statement.isCommitted = true
      queue.push({ marker: params[1] as string })
    } else {
      pending = pending.filter((other) => other !== statement)
      resume(Exit.succeed(statement.rows))
    }
  }

  const beginCommit = () => {
    if (committing !== undefined || !isPrimaryUp) return
    committing = wal.length
    const workspace = pick(workspaces)
    wal.push({ workspace, version: versionAt(workspace, wal.length) + 1 })
    queue.push({ commit: committing })
  }

  const deliver = () => {
    const [next] = queue
    if (next === undefined || !isFeedUp) return
    if ("commit" in next) {
      if (next.commit === committing) return
      const { workspace, version } = wal[next.commit]!
      revisions.invalidate(workspace)
      told.set(workspace, version)
      fence.onNotification(workspace)
    } else fence.onNotification(next.marker)
    queue.shift()
  }

  const reconnectFeed = () => {
    if (isFeedUp || !isPrimaryUp || committing !== undefined) return
    isFeedUp = true
    queue = []
    revisions.invalidateAll()
    fence.onNotification("heartbeat")
    for (const workspace of workspaces) told.set(workspace, versionAt(workspace, wal.length))
  }

  const poll = () => {
    const replica = pick(replicas)
    if (replica.usable !== undefined)
      polls.push({ replica, session: replica.usable.session, state: makeState(replica) })
  }

  const endPoll = () => {
    const [done] = polls
    polls = polls.slice(1)
    if (done === undefined || done.replica.usable?.session !== done.session) return
    done.replica.usable = { session: done.session, state: done.state }
  }

  const restartReplica = () => {
    const server = pick([0, 1])
    const replica = replicas[server]!
    failStatements(server)
    if (replica.usable === undefined) {
      replica.replayed = int(replica.replayed + 1)
      replica.usable = { session: makeSession(server), state: makeState(replica) }
    } else replica.usable = undefined
  }

  const actions: ReadonlyArray<readonly [weight: number, action: () => void]> = [
    [120, startRead],
    [300, advanceStatement],
    [40, beginCommit],
    [
      25,
      () => {
        committing = undefined
      }
    ],
    [
      80,
      () => {
        const replica = pick(replicas)
        replica.replayed = Math.min(wal.length, replica.replayed + 1 + int(2))
      }
    ],
    [80, deliver],
    [80, poll],
    [80, endPoll],
    [6, restartReplica],
    [
      6,
      () => {
        active = pick(replicas)
      }
    ],
    [
      3,
      () => {
        isFeedUp = false
      }
    ],
    [15, reconnectFeed],
    [
      2,
      () => {
        if (committing !== undefined) return
        isPrimaryUp = false
        isFeedUp = false
        for (const read of running) read.latest = undefined
        failStatements(primaryServer)
      }
    ],
    [
      15,
      () => {
        isPrimaryUp = true
      }
    ]
  ]
  const total = actions.reduce((sum, [weight]) => sum + weight, 0)
  const act = () => {
    let left = int(total)
    for (const [weight, action] of actions) {
      left -= weight
      if (left < 0) return action()
    }
  }
  for (let step = 0; step < steps && problems.length === 0; step++) {
    act()
    await new Promise((resolve) => setImmediate(resolve))
  }
  await Effect.runPromise(Fiber.interrupt(markers))
  return { problems, counts }
}
