import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { sharedCounterUp } from "../../application/Metrics.ts"
import { type Bucket, RateLimiter } from "../../application/RateLimiter.ts"
import { makeWindowCounter } from "../../application/WindowCounter.ts"
import { windowOf } from "../../domain/RateWindow.ts"
import type { SharedCounter } from "./SharedCounter.ts"

/** How long an answer of the shared counter is waited for (DESIGN.md section 5). */
const deadline = Duration.millis(50)
/** Lets what has arrived by now be read, and what waits for it run: it came in time, and only this process is late. */
const catchUp = Effect.callback<void>((resume) => {
  setImmediate(() => setImmediate(() => resume(Effect.void)))
})

/** Fails once an answer is late. */
const withinDeadline = <A, E>(answer: Effect.Effect<A, E>): Effect.Effect<A, E | Cause.TimeoutError> =>
  Effect.raceFirst(
    answer,
    Effect.sleep(deadline).pipe(
      Effect.andThen(catchUp),
      Effect.andThen(Effect.fail(new Cause.TimeoutError("no answer in time")))
    )
  )

/** How long no request asks a counter that failed; then one connection is tried, which no request waits for. */
const pause = Duration.seconds(1)
/** How long the start waits for the first connection, so that a restart hands out no second allowance. */
const patience = Duration.millis(250)

const nameOf = (bucket: Bucket, now: number): string => `prompt-retrieval:rate:{${bucket}}:${windowOf(now)}`

/** Every connection counts here once before any request relies on it: the same script, rights and round trip. */
const probeName = "prompt-retrieval:rate:probe"

const reasonOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return String(error instanceof Error && error.cause !== undefined ? error.cause : error)
}

/**
 * Counts keys on the Redis server at `url`, together with all who count there, and "process" in this process. A
 * server that is away, or does not answer within 50 ms, never blocks and never fails: this process counts instead,
 * from the highest count that it has seen of the key in that minute, until a new connection has proved itself. While
 * processes count apart, a key may get more than its limit; a request whose answer came too late may have been counted
 * in both. Each process denies a key once it has itself admitted `limit` requests in the minute, and raises a counter
 * that lost its count to the highest total that it knows: whatever Redis forgets, a key gets at most its limit per process.
 */
export const layer = (options: { readonly url: string }): Layer.Layer<RateLimiter> =>
  Layer.effect(
    RateLimiter,
    Effect.gen(function* () {
      // Not before it is used: the client costs a third of a second to load.
      const { connect } = yield* Effect.promise(() => import("./SharedCounter.ts"))
      const counter = makeWindowCounter()
      const tried = yield* Deferred.make<void>()
      let shared: SharedCounter | undefined
      let reported = true

      const report = Effect.fnUntraced(function* (up: boolean, message: string) {
        yield* Metric.update(sharedCounterUp, up ? 1 : 0)
        if (reported !== up) yield* up ? Effect.logInfo(message) : Effect.logWarning(message)
        reported = up
        yield* Deferred.succeed(tried, undefined)
      })

      /** One connection, from its proof to its loss, which is how this always ends. */
      const connection = Effect.gen(function* () {
        const connection = yield* connect(options.url)
        const probe = connection.take(probeName, Number.MAX_SAFE_INTEGER, { own: 0, total: 0 })
        // The first use of a script loads it; from then on each is one round trip, and their order stands.
        yield* probe
        yield* connection.refund(probeName)
        yield* withinDeadline(probe)
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            shared = connection
          }),
          () =>
            Effect.sync(() => {
              shared = undefined
            })
        )
        yield* report(true, "Rate limits are shared again")
        return yield* Deferred.await(connection.lost)
      })

      yield* Effect.scoped(connection).pipe(
        Effect.catchCause((cause) =>
          report(false, `Redis fails, so rate limits are counted in this process: ${reasonOf(cause)}`)
        ),
        Effect.andThen(Effect.sleep(pause)),
        Effect.forever,
        Effect.forkScoped
      )
      yield* Effect.timeoutOption(Deferred.await(tried), patience)

      const takeShared = (connection: SharedCounter, bucket: Bucket, limit: number, now: number) =>
        withinDeadline(connection.take(nameOf(bucket, now), limit, counter.get(bucket, now))).pipe(
          Effect.match({
            onSuccess: (reply) => {
              if (reply > 0) return counter.admit(bucket, limit, reply, now)
              counter.raise(bucket, -reply, now)
              return false
            },
            onFailure: (error) => {
              Deferred.doneUnsafe(connection.lost, Effect.fail(error))
              return counter.take(bucket, limit, now)
            }
          })
        )

      return {
        isFull: counter.isFull,
        take: (bucket, limit, now) =>
          Effect.suspend(() =>
            shared === undefined || bucket === "process"
              ? Effect.succeed(counter.take(bucket, limit, now))
              : takeShared(shared, bucket, limit, now)
          ),
        refund: (bucket, now) =>
          Effect.suspend(() => {
            counter.refund(bucket, now)
            const connection = shared
            if (connection === undefined || bucket === "process") return Effect.void
            return connection.refund(nameOf(bucket, now)).pipe(
              Effect.catch((error) => Deferred.fail(connection.lost, error)),
              Effect.forkDetach({ startImmediately: true }),
              Effect.asVoid
            )
          })
      }
    })
  )
