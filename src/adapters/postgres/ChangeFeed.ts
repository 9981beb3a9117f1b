import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { ChangeFeed, Changes } from "../../application/ChangeFeed.ts"
import { changeFeedUp } from "../../application/Metrics.ts"
import { channel, everything, heartbeat } from "./changes.ts"

/** How long after a heartbeat was sent its return vouches for the feed, in milliseconds (DESIGN.md section 7). */
const vouched = 3000
const beat = "1 second"
/** How long a heartbeat may take to be sent. */
const beatDeadline = "1 second"
/** How long a broken feed rests before it listens anew. */
const pause = "500 millis"

/**
 * Listens on a connection of its own. Each second it sends itself a heartbeat over another: while none that was sent
 * in the last 3 s has come back, the feed counts as down, so a connection that was cut without a word is found out.
 * Behind a pooler that keeps notices back, or on a server that only reads, it is down for good, and says so once.
 */
export const layer: Layer.Layer<ChangeFeed, never, PgClient.PgClient> = Layer.effect(
  ChangeFeed,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const changes = new Changes()
    const own = `${heartbeat}${crypto.randomUUID()} `
    let upUntil = Number.NEGATIVE_INFINITY
    let reported: boolean | undefined

    const report = (up: boolean) =>
      Effect.suspend(() => {
        if (reported === up) return Effect.void
        const first = reported === undefined
        reported = up
        const log = up
          ? Effect.logInfo("Changes are heard of again")
          : Effect.logWarning("Changes can't be heard of, so nothing is cached")
        return Effect.andThen(Metric.update(changeFeedUp, up ? 1 : 0), up && first ? Effect.void : log)
      })

    const hear = (payload: string): Effect.Effect<void> => {
      if (payload.startsWith(own)) {
        upUntil = Number(payload.slice(own.length)) + vouched
        return report(true)
      }
      if (!payload.startsWith(heartbeat)) {
        if (payload === everything) changes.addAll()
        else changes.add(payload)
      }
      return Effect.void
    }

    const isUp = () => performance.now() < upUntil

    const sendBeat = Effect.suspend(() => sql.notify(channel, own + performance.now())).pipe(
      Effect.timeout(beatDeadline),
      Effect.ignore
    )

    /** A connection of no pool, for nobody must wait for the end of one whose server may be frozen. */
    const connect = Effect.acquireRelease(Scope.make(), (scope, exit) =>
      Effect.forkDetach(Scope.close(scope, exit))
    ).pipe(
      Effect.flatMap((scope) =>
        PgConnection.make(sql.config).pipe(
          Effect.flatMap((connection) => connection.listen(channel)),
          Scope.provide(scope)
        )
      )
    )

    /** Ends when the connection does, or when no heartbeat has come back for too long. */
    const listen = Effect.gen(function* () {
      const notices = yield* connect
      // What changed before this connection listened was not heard.
      changes.addAll()
      yield* Effect.forkScoped(Effect.repeat(sendBeat, Schedule.spaced(beat)))
      const watch = Effect.gen(function* () {
        yield* Effect.sleep(vouched)
        while (isUp()) yield* Effect.sleep("250 millis")
      })
      const hearAll = Effect.forever(Effect.flatMap(Queue.take(notices), ({ payload }) => hear(payload)))
      yield* Effect.raceFirst(hearAll, watch)
    })

    yield* Effect.scoped(listen).pipe(
      Effect.ignore,
      Effect.andThen(
        Effect.suspend(() => {
          upUntil = Number.NEGATIVE_INFINITY
          return report(false)
        })
      ),
      Effect.andThen(Effect.sleep(pause)),
      Effect.forever,
      Effect.forkScoped
    )

    return ChangeFeed.of({
      now: () => (isUp() ? changes.now() : undefined),
      lastChange: (workspace) => (isUp() ? changes.lastChange(workspace) : undefined)
    })
  })
)
