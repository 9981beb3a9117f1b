import { setImmediate } from "node:timers/promises"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import { type Bucket, RateLimiter } from "../../../application/ports/RateLimiter.ts"
import { makeStateLog } from "../../../application/observability/StateLog.ts"
import { FixedWindowCounter } from "./InProcessRateLimiter.ts"
import { toRateWindow } from "../../../domain/ApiKey.ts"
import { connect, type RedisCounter } from "./RedisCounter.ts"

export const sharedCounterUp = Metric.gauge("prompt_retrieval_rate_limiter_shared_up", {
  description: "1 while the shared rate limit counter decides, 0 while this process counts alone"
})

/** How long a request waits for a reply of the shared counter, in milliseconds. */
const replyTimeoutMs = 50
/** The delay before a reconnect. No request waits for a connection. */
const reconnectDelay = Duration.seconds(1)
/**
 * How long the start of the process waits for the first connection at most. Without this wait, the process would first
 * count alone from zero, so a restart would give each key a new allowance for the minute.
 */
const startupWait = Duration.millis(250)

/** Waits one turn of the event loop. */
const nextTurn = Effect.promise(() => setImmediate())

/** Fails if there is no reply in time. A reply that arrived in time, but was not read yet, still counts. */
const withReplyTimeout = <A, E>(reply: Effect.Effect<A, E>): Effect.Effect<A, E | Cause.TimeoutError> =>
  Effect.raceFirst(
    reply,
    Effect.sleep(replyTimeoutMs).pipe(
      Effect.andThen(nextTurn),
      Effect.andThen(nextTurn),
      Effect.andThen(Effect.fail(new Cause.TimeoutError(`no reply within ${replyTimeoutMs} ms`)))
    )
  )

const toRedisKey = (bucket: Bucket, now: number): string =>
  `prompt-retrieval:rate:{${bucket}}:${toRateWindow(now)}`

const probeKey = "prompt-retrieval:rate:probe"

/**
 * Checks that requests can be counted on a connection. The first use of a script also loads it, so the reply timeout
 * applies only to the last `take`. Each later use takes one round trip, so the commands keep their order.
 */
const probe = Effect.fnUntraced(function* (connection: RedisCounter) {
  const take = connection.take(probeKey, Number.MAX_SAFE_INTEGER, { own: 0, total: 0 })
  yield* take
  yield* connection.refund(probeKey)
  yield* withReplyTimeout(take)
})

/**
 * Keeps one connection to the Redis server at `url` in the background until the scope closes, and reports in the metric
 * and in the log whether it is up. Returns a function that returns the connection, or `undefined` while there is none.
 */
const maintainConnection = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<() => RedisCounter | undefined, never, Scope.Scope> {
  const stateLog = makeStateLog({
    failed: "Redis unavailable; each process counts alone",
    restored: "Redis restored; rate limits are shared"
  })
  const firstAttempt = yield* Deferred.make<void>()
  let current: RedisCounter | undefined

  const setConnection = Effect.fnUntraced(function* (
    connection: RedisCounter | undefined,
    log: Effect.Effect<void>
  ) {
    current = connection
    yield* Metric.update(sharedCounterUp, connection === undefined ? 0 : 1)
    yield* log
    yield* Deferred.succeed(firstAttempt, undefined)
  })

  /** Connects, probes the connection, and fails when the connection is lost. */
  const useConnection = Effect.gen(function* () {
    const connection = yield* connect(url)
    yield* probe(connection)
    yield* setConnection(connection, stateLog.up)
    return yield* Deferred.await(connection.lost)
  })

  yield* Effect.scoped(useConnection).pipe(
    Effect.catchCause((cause) => setConnection(undefined, stateLog.down(String(Cause.squash(cause))))),
    Effect.andThen(Effect.sleep(reconnectDelay)),
    Effect.forever,
    Effect.forkScoped
  )
  yield* Effect.timeoutOption(Deferred.await(firstAttempt), startupWait)
  return () => current
})

/**
 * Counts the requests of each key on the Redis server at `url`, together with all processes that use this server. The
 * bucket "process" is counted in this process alone. Waits for a reply for about 50 ms at most. While Redis is
 * unavailable or slow, this process counts alone, and starts from the highest count that it knows. If Redis loses a
 * count, a process raises the count to the highest total that it knows. A key therefore gets at most its limit per
 * process, even if Redis loses all counts.
 */
export const layer = (options: { readonly url: string }): Layer.Layer<RateLimiter> =>
  Layer.effect(
    RateLimiter,
    Effect.gen(function* () {
      const counter = new FixedWindowCounter()
      const getConnection = yield* maintainConnection(options.url)
      const getSharedCounter = (bucket: Bucket) => (bucket === "process" ? undefined : getConnection())

      return {
        isKnownExhausted: (bucket, limit, now) => counter.isKnownExhausted(bucket, limit, now),
        take: (bucket, limit, now) =>
          Effect.suspend(() => {
            const connection = getSharedCounter(bucket)
            if (connection === undefined) return Effect.succeed(counter.take(bucket, limit, now))
            const known = counter.get(bucket, now)
            return Effect.match(withReplyTimeout(connection.take(toRedisKey(bucket, now), limit, known)), {
              onSuccess: (reply) => {
                if (reply > 0) return counter.admit(bucket, limit, reply, now)
                counter.raiseTo(bucket, -reply, now)
                return false
              },
              onFailure: (error) => {
                Deferred.doneUnsafe(connection.lost, Effect.fail(error))
                return counter.take(bucket, limit, now)
              }
            })
          }),
        refund: (bucket, now) =>
          Effect.suspend(() => {
            counter.refund(bucket, now)
            const connection = getSharedCounter(bucket)
            if (connection === undefined) return Effect.void
            return connection.refund(toRedisKey(bucket, now)).pipe(
              Effect.catch((error) => Deferred.fail(connection.lost, error)),
              Effect.forkDetach({ startImmediately: true }),
              Effect.asVoid
            )
          })
      }
    })
  )
