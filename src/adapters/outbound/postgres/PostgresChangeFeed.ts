import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { ChangeFeed, WorkspaceRevisions } from "../../../application/ports/ChangeFeed.ts"
import { makeStateLog } from "../../../application/StateLog.ts"
import { setChangeFeedUp } from "./ChangeFeedMetric.ts"
import { channel, heartbeatPrefix, recordChange } from "./NotifyChannel.ts"

/** How long a received heartbeat keeps the feed up, counted from when it was sent, in milliseconds. */
const heartbeatTtlMs = 3000
const heartbeatInterval = "1 second"
/** How often the feed checks whether its last heartbeat has expired. */
const checkInterval = "250 millis"
/** How long the feed waits before it reconnects. */
const reconnectDelay = "500 millis"

const sendNotification = "select pg_notify($1, $2)"

/**
 * Listens for notifications on one connection and sends a heartbeat notification every second on a second connection. If
 * no heartbeat sent within the last 3 s has arrived, the feed is down and reconnects; this detects silently dropped
 * connections. The sender must be a separate connection, because a pooler that drops notifications may still echo a
 * connection's own ones. Behind such a pooler and on a read-only server the feed stays down, and logs it once.
 */
export const layer: Layer.Layer<ChangeFeed, never, PgClient.PgClient> = Layer.effect(
  ChangeFeed,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const revisions = new WorkspaceRevisions()
    const ownHeartbeatPrefix = `${heartbeatPrefix}${crypto.randomUUID()} `
    let upUntil = Number.NEGATIVE_INFINITY

    const stateLog = makeStateLog({
      failed: "Change feed down; caching disabled",
      restored: "Change feed restored; caching enabled"
    })
    const reportUp = Effect.andThen(setChangeFeedUp(true), stateLog.up)
    const reportDown = Effect.andThen(setChangeFeedUp(false), stateLog.down())

    const isUp = () => performance.now() < upUntil

    const markDown = Effect.sync(() => {
      upUntil = Number.NEGATIVE_INFINITY
    })

    const onNotification = (payload: string): Effect.Effect<void> => {
      if (payload.startsWith(ownHeartbeatPrefix)) {
        const sentAt = Number(payload.slice(ownHeartbeatPrefix.length))
        upUntil = sentAt + heartbeatTtlMs
        return reportUp
      }
      if (!payload.startsWith(heartbeatPrefix)) recordChange(revisions, payload)
      return Effect.void
    }

    /** Sends heartbeats until the connection is lost. */
    const sendHeartbeats = (notifier: PgConnection.PgConnection) =>
      Effect.suspend(() =>
        notifier.query(sendNotification, [channel, ownHeartbeatPrefix + performance.now()])
      ).pipe(Effect.repeat(Schedule.spaced(heartbeatInterval)))

    /** Runs `disconnect` once no heartbeat has arrived for too long; a new connection gets the same time. */
    const disconnectWhenDown = (disconnect: Effect.Effect<void>) =>
      Effect.gen(function* () {
        const connectDeadline = performance.now() + heartbeatTtlMs
        do yield* Effect.sleep(checkInterval)
        while (isUp() || performance.now() < connectDeadline)
        yield* disconnect
      })

    /** Listens until a connection is lost, or both are closed because no heartbeat has arrived. */
    const listen = Effect.gen(function* () {
      const connections = yield* Effect.acquireRelease(Scope.make(), (scope, exit) =>
        Scope.close(scope, exit)
      )
      const disconnect = Scope.close(connections, Exit.void)
      yield* Effect.forkScoped(disconnectWhenDown(disconnect))
      const connect = Scope.provide(PgConnection.make(sql.config), connections)
      const [listener, notifier] = yield* Effect.all([connect, connect], { concurrency: 2 })
      const notifications = yield* listener.listen(channel)
      // Runs before `listen` is undone, which would wait for a response that a silent connection never gives.
      yield* Effect.addFinalizer(() => disconnect)
      // Changes before this connection listened were missed.
      revisions.invalidateAll()
      const handleNotifications = Effect.forever(
        Effect.flatMap(Queue.take(notifications), ({ payload }) => onNotification(payload))
      )
      yield* Effect.raceFirst(handleNotifications, sendHeartbeats(notifier))
    }).pipe(Effect.ensuring(markDown))

    yield* Effect.scoped(listen).pipe(
      // Every cause: `disconnect` interrupts the fibers that use the closed connections.
      Effect.catchCause(() => reportDown),
      Effect.andThen(Effect.sleep(reconnectDelay)),
      Effect.forever,
      Effect.forkScoped
    )

    return ChangeFeed.of({
      revision: () => (isUp() ? revisions.revision() : undefined),
      revisionOf: (workspace) => (isUp() ? revisions.revisionOf(workspace) : undefined)
    })
  })
)
