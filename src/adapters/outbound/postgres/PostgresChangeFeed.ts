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
import { channel, allWorkspaces, heartbeatPrefix } from "./NotifyChannel.ts"

/** How long after a heartbeat was sent its return vouches for the feed, in milliseconds (DESIGN.md section 7). */
const vouched = 3000
const beat = "1 second"
/** How long a broken feed rests before it listens anew. */
const pause = "500 millis"

/**
 * Listens on a connection of its own. Each second it sends itself a heartbeat over another of its own: while none that
 * was sent in the last 3 s has come back, the feed counts as down, and begins anew on new connections, so connections
 * that were cut without a word are found out, and done with. It has to be another: behind a pooler that keeps notices
 * back, what a connection sends may come back on it all the same. There, and on a server that only reads, the feed is
 * down for good, and says so once.
 */
export const layer: Layer.Layer<ChangeFeed, never, PgClient.PgClient> = Layer.effect(
  ChangeFeed,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const changes = new WorkspaceRevisions()
    const own = `${heartbeatPrefix}${crypto.randomUUID()} `
    let upUntil = Number.NEGATIVE_INFINITY

    const stateLog = makeStateLog({
      failed: "Change feed down; caching disabled",
      restored: "Change feed restored; caching enabled"
    })
    const reportUp = Effect.andThen(setChangeFeedUp(true), stateLog.up)
    const reportDown = Effect.andThen(setChangeFeedUp(false), stateLog.down())

    const hear = (payload: string): Effect.Effect<void> => {
      if (payload.startsWith(own)) {
        upUntil = Number(payload.slice(own.length)) + vouched
        return reportUp
      }
      if (!payload.startsWith(heartbeatPrefix)) {
        if (payload === allWorkspaces) changes.invalidateAll()
        else changes.invalidate(payload)
      }
      return Effect.void
    }

    const isUp = () => performance.now() < upUntil

    const goDown = Effect.sync(() => {
      upUntil = Number.NEGATIVE_INFINITY
    })

    /** Ends when a connection does; both do when no heartbeat has come back for too long. */
    const listen = Effect.gen(function* () {
      const connections = yield* Effect.acquireRelease(Scope.make(), (scope, exit) =>
        Scope.close(scope, exit)
      )
      const disconnect = Scope.close(connections, Exit.void)
      const watch = Effect.gen(function* () {
        do yield* Effect.sleep("250 millis")
        while (isUp() || performance.now() < givenUntil)
        yield* disconnect
      })
      const givenUntil = performance.now() + vouched
      yield* Effect.forkScoped(watch)
      const connect = Scope.provide(PgConnection.make(sql.config), connections)
      const [ear, mouth] = yield* Effect.all([connect, connect], { concurrency: 2 })
      const notices = yield* ear.listen(channel)
      // Before listening ends, which would wait for an answer that a silent connection never gives.
      yield* Effect.addFinalizer(() => disconnect)
      // What changed before this connection listened was not heard.
      changes.invalidateAll()
      const beats = Effect.suspend(() =>
        mouth.query("select pg_notify($1, $2)", [channel, own + performance.now()])
      ).pipe(Effect.repeat(Schedule.spaced(beat)))
      const hearAll = Effect.forever(Effect.flatMap(Queue.take(notices), ({ payload }) => hear(payload)))
      yield* Effect.raceFirst(hearAll, beats)
    }).pipe(Effect.ensuring(goDown))

    yield* Effect.scoped(listen).pipe(
      // A connection that was closed here interrupts who hears on it.
      Effect.catchCause(() => reportDown),
      Effect.andThen(Effect.sleep(pause)),
      Effect.forever,
      Effect.forkScoped
    )

    return ChangeFeed.of({
      revision: () => (isUp() ? changes.revision() : undefined),
      revisionOf: (workspace) => (isUp() ? changes.revisionOf(workspace) : undefined)
    })
  })
)
