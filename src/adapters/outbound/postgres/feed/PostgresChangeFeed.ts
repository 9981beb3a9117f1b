import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { isSqlError } from "effect/sql/SqlError"
import { elapsedBetween, FeedState, readClocks } from "../../../../application/cache/FeedState.ts"
import { checkIsUp } from "../../../../application/cache/RevisionedCache.ts"
import { makeStateLog } from "../../../../application/observability/StateLog.ts"
import { ChangeFeed, type ClockReading } from "../../../../application/ports/ChangeFeed.ts"
import { makeDatabaseServer, serverIdentity } from "../connection/DatabaseServer.ts"
import { Database } from "../Database.ts"
import { describeSqlError } from "../driver/SqlErrors.ts"
import { allWorkspaces, channel } from "../schema/Triggers.ts"

/** The prefix of a heartbeat's payload. A heartbeat reports no change, and other processes ignore the heartbeat. */
const heartbeatPrefix = "heartbeat "

const changeFeedUp = Metric.gauge("prompt_retrieval_change_feed_up", {
  description: "1 while the change feed is up, 0 while it is down and nothing is cached"
})

/** The interval between the checks for a pause of the process. */
const pauseCheckInterval = "100 millis"
/** How long a heartbeat keeps the feed up after the heartbeat was sent, in milliseconds. */
const heartbeatTtlMs = 3000
const heartbeatInterval = "1 second"
/** How often the feed checks whether its last heartbeat has expired. */
const checkInterval = "250 millis"
const reconnectDelay = "500 millis"

/** Sends a notification, and returns the identity of the server, because the server behind a pooler can change. */
const sendNotification = `select pg_notify($1, $2), ${serverIdentity} as server`

/** The logged reason if the notifier sends heartbeats but the listener receives none. */
const noNotification =
  "no notification arrives; DATABASE_FEED_URL must lead directly to PostgreSQL, to the database of DATABASE_URL"

/** Returns the logged reason of a failure, or `undefined` if the only cause is an interruption. */
const describeCause = (cause: Cause.Cause<unknown>): string | undefined => {
  if (Cause.hasInterruptsOnly(cause)) return undefined
  const error = Cause.squash(cause)
  return isSqlError(error) ? describeSqlError(error) : Cause.pretty(cause)
}

/**
 * Listens for notifications on one connection, the listener. A second connection, the notifier, sends a heartbeat
 * notification every second. If no heartbeat that was sent within the last 3 s has arrived, the feed is down and
 * reconnects. In this way, the feed detects connections that were lost without an error. After a pause of the process
 * (`FeedState`), the feed is down until a heartbeat arrives that was sent after the pause.
 *
 * The notifier is a separate connection, because a pooler that drops notifications can still return a connection's own
 * notifications. The notifier uses the same URL as all queries, so the heartbeats also detect a listener that is
 * connected to another database. Behind a pooler that drops notifications, and on a read-only server, the feed stays
 * down and logs the reason once.
 *
 * @param listenerUrl the URL of the listener; if undefined, the URL of the database
 */
const makeChangeFeed = Effect.fnUntraced(function* (listenerUrl: Redacted.Redacted | undefined) {
  const { server } = yield* Database
  const listenerConfig = (listenerUrl === undefined ? server : makeDatabaseServer(listenerUrl)).config
  const state = new FeedState(heartbeatTtlMs)
  const observePause = Effect.sync(() => state.observePause())
  yield* Effect.forkScoped(Effect.repeat(observePause, Schedule.spaced(pauseCheckInterval)))
  const ownHeartbeatPrefix = `${heartbeatPrefix}${crypto.randomUUID()} `
  /** True if the current notifier sent a heartbeat while the feed was down, and no heartbeat has arrived since. */
  let missesNotifications = false
  /** True if the feed closed the current connections because the last heartbeat expired. */
  let hasExpired = false

  const stateLog = makeStateLog(
    { failed: "Change feed down; caching disabled", restored: "Change feed restored; caching enabled" },
    changeFeedUp
  )

  const onHeartbeat = (sentAt: ClockReading): Effect.Effect<void> => {
    state.recordContact(sentAt)
    missesNotifications = false
    return stateLog.up
  }

  const onNotification = (payload: string): Effect.Effect<void> => {
    if (payload.startsWith(ownHeartbeatPrefix)) {
      const sentAt: ClockReading = JSON.parse(payload.slice(ownHeartbeatPrefix.length))
      // A heartbeat that arrives too late does not prove that the feed works now.
      return elapsedBetween(sentAt, readClocks()) < heartbeatTtlMs ? onHeartbeat(sentAt) : Effect.void
    }
    if (payload === allWorkspaces) state.invalidateAll()
    else if (!payload.startsWith(heartbeatPrefix)) state.invalidate(payload)
    return Effect.void
  }

  /** Sends heartbeats until the connection is lost or a pooler connects the notifier to a different server. */
  const sendHeartbeats = (notifier: PgConnection.PgConnection) =>
    Effect.suspend(() => {
      // Checks for a pause first, because a pause that is detected later would invalidate the heartbeat.
      const payload = ownHeartbeatPrefix + JSON.stringify(state.observePause())
      // The statement is not prepared, because a pooler can run each statement in another session.
      return notifier.query(sendNotification, [channel, payload], false)
    }).pipe(
      Effect.tap(({ rows }) => {
        if (!checkIsUp(state)) missesNotifications = true
        return server.confirm(rows[0])
      }),
      Effect.repeat(Schedule.spaced(heartbeatInterval))
    )

  /** Runs `disconnect` once the last heartbeat expires. The first heartbeat must arrive within `heartbeatTtlMs`. */
  const disconnectWhenDown = Effect.fnUntraced(function* (disconnect: Effect.Effect<void>) {
    yield* Effect.sleep(heartbeatTtlMs)
    while (state.isAlive()) yield* Effect.sleep(checkInterval)
    hasExpired = true
    yield* disconnect
  })

  /** Listens until a connection is lost, no heartbeat arrives, or the server changes (`DatabaseServer`). */
  const listen = Effect.gen(function* () {
    const connections = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const disconnect = Scope.close(connections, Exit.void)
    yield* Effect.forkScoped(disconnectWhenDown(disconnect))
    const connect = (config: PgConnection.Config) => Scope.provide(PgConnection.make(config), connections)
    missesNotifications = false
    hasExpired = false
    const [listener, notifier] = yield* Effect.all([connect(listenerConfig), connect(server.config)], {
      concurrency: 2
    })
    const { rows } = yield* notifier.query(`select ${serverIdentity} as server`, [], false)
    yield* server.confirm(rows[0])
    const notifications = yield* listener.listen(channel)
    // Closes the connections before `listener.listen` is undone. Otherwise, the driver would wait for a response that
    // never arrives on a silent connection.
    yield* Effect.addFinalizer(() => disconnect)
    const handleNotifications = Effect.forever(
      Effect.flatMap(Queue.take(notifications), ({ payload }) => onNotification(payload))
    )
    yield* Effect.raceFirst(handleNotifications, sendHeartbeats(notifier))
  }).pipe(Effect.ensuring(Effect.sync(() => state.markDown())))

  /** Returns the logged reason. After an expiry, the cause only states that the feed closed the connections. */
  const findReason = (cause: Cause.Cause<unknown>): string | undefined => {
    if (missesNotifications) return noNotification
    return hasExpired ? undefined : describeCause(cause)
  }

  yield* Effect.scoped(listen).pipe(
    // Catches every cause, because `disconnect` interrupts the fibers that use the closed connections.
    Effect.catchCause((cause) => stateLog.down(findReason(cause))),
    Effect.andThen(Effect.sleep(reconnectDelay)),
    Effect.forever,
    Effect.forkScoped
  )

  return ChangeFeed.of(state)
})

/**
 * Provides the change feed of a PostgreSQL server.
 *
 * @param listenerUrl the URL of the connection that listens; if undefined, the URL of the database. The URL must not
 * lead to a pooler that runs each transaction in another session, because a connection to such a pooler cannot listen.
 */
export const layer = (listenerUrl?: Redacted.Redacted): Layer.Layer<ChangeFeed, never, Database> =>
  Layer.effect(ChangeFeed, makeChangeFeed(listenerUrl))
