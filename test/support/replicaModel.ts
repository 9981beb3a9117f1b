import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Query, Row, Statement } from "../../src/adapters/outbound/postgres/connection/Query.ts"
import { FenceQueue } from "../../src/adapters/outbound/postgres/replica/FenceQueue.ts"
import type { ReplicaSession } from "../../src/adapters/outbound/postgres/replica/Replica.ts"
import { type PoolName, ReadRouter } from "../../src/adapters/outbound/postgres/replica/ReadRouter.ts"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import { WorkspaceRevisions } from "../../src/application/WorkspaceRevisions.ts"
import { makeRandom } from "./random.ts"

// A primary, two standbys, a change feed and the router, of which every step is taken separately, in any order.

const workspaces = ["a", "b", "c"]

/** A commit in the WAL, which sets a workspace to a version. */
interface Commit {
  readonly workspace: string
  readonly version: number
}

/** What the notification queue of the primary holds: a commit by its index in the WAL, or a heartbeat. */
type Queued = { readonly commit: number } | { readonly sentAt: number }

/** A statement on its way to a server, and then back. */
interface PendingStatement {
  readonly server: number
  readonly statement: Statement
  readonly resume: (exit: Exit.Exit<ReadonlyArray<Row>, Unavailable>) => void
  rows: ReadonlyArray<Row> | undefined
}

/** A standby, as the router sees it and as it is. */
interface ModelReplica {
  readonly fences: FenceQueue
  usable: ReplicaSession | undefined
  /** The number of commits that it has replayed. */
  replayed: number
}

/** A read of a caller. */
interface ModelRead {
  readonly workspace: string
  /** The version that the caller must see at least. */
  readonly floor: number
  /** The same for a key that is not found: only reads of the key itself have shown that it exists. */
  readonly keyFloor: number
  /** The version on the primary, if that has been up since. */
  latest: number | undefined
  /** Whether the caller must see that version, because changes go unreported. */
  readonly mustBeLatest: boolean
}

const primaryServer = -1

/** Runs random steps, and returns what went wrong and what the reads did. */
export const runReplicaModel = async (seed: number, steps: number) => {
  const { int, pick } = makeRandom(seed)
  const problems: Array<string> = []
  const counts = { replica: 0, primary: 0, fenced: 0, repeated: 0 }

  const wal: Array<Commit> = []
  /** The commit whose record is in the WAL and which the primary does not show yet. */
  let committing: number | undefined
  let isPrimaryUp = true
  let queue: Array<Queued> = []
  let isFeedUp = true
  let isDown = false
  let epoch = 0
  let pending: Array<PendingStatement> = []
  let running: Array<ModelRead> = []
  const told = new Map<string, number>()
  const shown = new Map<string, number>()
  const keysShown = new Map<string, number>()
  let fence: { readonly revision: number; readonly at: number } | undefined
  let polls: Array<{ readonly replica: ModelReplica; readonly epoch: number; readonly position: number }> = []

  const revisions = new WorkspaceRevisions()
  const watch = { confirmedAt: Number.NEGATIVE_INFINITY, requestFence: () => {} }
  const barrier = {
    provenAt: Number.NEGATIVE_INFINITY,
    await: () =>
      Effect.suspend(() => {
        if (committing !== undefined || !isPrimaryUp) {
          // The primary cannot run these reads, although it is up.
          for (const read of running) read.latest = undefined
          return Effect.fail(Unavailable)
        }
        barrier.provenAt = performance.now()
        return Effect.void
      })
  }

  const versionAt = (workspace: string, position: number): number =>
    wal.slice(0, position).findLast((commit) => commit.workspace === workspace)?.version ?? 0
  const visiblePosition = () => committing ?? wal.length

  const makeServer =
    (server: number): Query =>
    (statement) =>
      Effect.callback((resume) => {
        pending.push({ server, statement, resume: (exit) => resume(exit), rows: undefined })
      })
  const makePools = (server: number) => ({
    queryPrompts: makeServer(server),
    queryKeys: makeServer(server)
  })
  const makeSession = (server: number) => ({ epoch: ++epoch, ...makePools(server) })
  const replicas: ReadonlyArray<ModelReplica> = [0, 1].map((server) => ({
    fences: new FenceQueue(),
    usable: makeSession(server),
    replayed: 0
  }))
  let active = replicas[0]!

  const router = new ReadRouter({
    revisions,
    watch,
    barrier,
    primary: makePools(primaryServer),
    availability: {
      get isDown() {
        return isDown
      },
      reportDown: () => {
        isDown = true
      }
    },
    findReplica: () =>
      active.usable === undefined ? undefined : { fences: active.fences, session: active.usable },
    isFeedUp: () => isFeedUp,
    metrics: {
      countReplica: () => counts.replica++,
      countPrimary: () => counts.primary++,
      countFenced: () => counts.fenced++,
      countRepeated: () => counts.repeated++,
      setPrimaryDown: () => {}
    }
  })

  const startRead = () => {
    const workspace = pick(workspaces)
    const pool = pick<PoolName>(["queryPrompts", "queryKeys"])
    const readsKey = pool !== "queryPrompts"
    const statement: Statement = {
      text: workspace,
      params: [],
      scope: readsKey
        ? {
            ids: [`hash of ${workspace}`],
            rowCount: 1,
            findWorkspaces: (rows) => rows.map((row) => row.workspace as string)
          }
        : { ids: [workspace], rowCount: 1 }
    }
    const read: ModelRead = {
      workspace,
      floor: Math.max(told.get(workspace) ?? 0, shown.get(workspace) ?? 0),
      keyFloor: Math.max(told.get(workspace) ?? 0, keysShown.get(workspace) ?? 0),
      latest: isPrimaryUp ? versionAt(workspace, visiblePosition()) : undefined,
      mustBeLatest: !isFeedUp && !isDown
    }
    running.push(read)
    Effect.runFork(router.run(pool, statement)).addObserver((exit) => {
      running = running.filter((other) => other !== read)
      if (Exit.isFailure(exit)) return
      const version = (exit.value[0]?.version as number | undefined) ?? 0
      const isMissingKey = readsKey && version === 0
      const floor = isMissingKey ? read.keyFloor : read.floor
      if (version < floor) problems.push(`${workspace}: version ${version} after ${floor}`)
      if (version === 0 && (read.latest ?? 0) > 0)
        problems.push(`${workspace}: not found, although it exists`)
      if (read.mustBeLatest && version < (read.latest ?? 0))
        problems.push(`${workspace}: version ${version} of ${read.latest} while changes go unreported`)
      shown.set(workspace, Math.max(shown.get(workspace) ?? 0, version))
      if (readsKey) keysShown.set(workspace, Math.max(keysShown.get(workspace) ?? 0, version))
    })
  }

  const failStatements = (server: number) => {
    const failed = pending.filter((statement) => statement.server === server)
    pending = pending.filter((statement) => statement.server !== server)
    for (const { resume } of failed) resume(Exit.fail(Unavailable))
  }

  /** Lets a server run a statement, or its result arrive. */
  const advanceStatement = () => {
    if (pending.length === 0) return
    const statement = pick(pending)
    const { server, resume } = statement
    if (statement.rows === undefined) {
      const workspace = statement.statement.text
      const position = server === primaryServer ? visiblePosition() : replicas[server]!.replayed
      const version = versionAt(workspace, position)
      statement.rows = version === 0 ? [] : [{ workspace, version } as unknown as Row]
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
    } else watch.confirmedAt = next.sentAt
    queue.shift()
  }

  const reconnectFeed = () => {
    if (isFeedUp || !isPrimaryUp || committing !== undefined) return
    isFeedUp = true
    isDown = false
    queue = []
    revisions.invalidateAll()
    watch.confirmedAt = performance.now()
    for (const workspace of workspaces) told.set(workspace, versionAt(workspace, wal.length))
  }

  const poll = () => {
    const replica = pick(replicas)
    if (replica.usable !== undefined)
      polls.push({ replica, epoch: replica.usable.epoch, position: replica.replayed })
  }

  const endPoll = () => {
    const [done] = polls
    polls = polls.slice(1)
    if (done !== undefined && done.replica.usable?.epoch === done.epoch)
      done.replica.fences.advance(BigInt(done.position))
  }

  const restartReplica = () => {
    const server = pick([0, 1])
    const replica = replicas[server]!
    failStatements(server)
    replica.fences.losePosition()
    if (replica.usable === undefined) {
      replica.replayed = int(replica.replayed + 1)
      replica.usable = makeSession(server)
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
    [
      30,
      () => isPrimaryUp && isFeedUp && committing === undefined && queue.push({ sentAt: performance.now() })
    ],
    [
      60,
      () => {
        if (fence === undefined) fence = { revision: revisions.revision(), at: performance.now() }
        else if (isPrimaryUp) {
          for (const { fences } of replicas) fences.add({ ...fence, position: BigInt(wal.length) })
          fence = undefined
        }
      }
    ],
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
        fence = undefined
      }
    ],
    [15, reconnectFeed],
    [
      2,
      () => {
        if (committing !== undefined) return
        isPrimaryUp = false
        isFeedUp = false
        fence = undefined
        for (const read of running) read.latest = undefined
        failStatements(primaryServer)
      }
    ],
    [
      15,
      () => {
        isPrimaryUp = true
        isDown = false
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
  return { problems, counts }
}
