import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { createClient } from "redis"
import { makeStateLog } from "../../../application/observability/StateLog.ts"
import { RateLimiter } from "../../../application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import { windowSeconds } from "../../../domain/RateLimit.ts"
import { makeRateLimiter, toRateWindow } from "./InProcessRateLimiter.ts"

export const sharedCounterUp = Metric.gauge("prompt_retrieval_rate_limiter_shared_up", {
  description: "1 while the shared rate limit counter decides, 0 while this process counts alone"
})

/** How long a request waits for a reply of the shared counter, in milliseconds. */
const replyTimeoutMs = 50
/** The delay before a reconnect. No request waits for a connection. */
const reconnectDelay = "1 second"
/**
 * The maximum time that the start of the process waits for the first connection. Without this wait, the process would
 * first count alone from zero, so a restart would give each key a new allowance for the minute.
 */
const startupWait = "250 millis"

/**
 * The time without a request, in milliseconds, after which Redis deletes a count. This time is longer than a minute,
 * because the clocks of processes differ.
 */
const expiryMs = 2 * windowSeconds * 1_000

/** Counts one request and returns 1, or returns 0 if the count is at the limit. */
const takeScript = `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], count + 1, 'PX', ${expiryMs})
return 1`

/** Subtracts one request from the count, unless the count is 0. */
const refundScript = `if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then redis.call('DECR', KEYS[1]) end`

const attempt = <A>(run: () => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: run, catch: (error) => error })

const toRedisKey = (key: ApiKeyId, now: number): string =>
  `prompt-retrieval:rate:{${key}}:${toRateWindow(now)}`

const probeKey = "prompt-retrieval:rate:probe"

/**
 * Fails if there is no reply in time. Each `yieldNow` waits one turn of the event loop, so a reply that arrived in time
 * but was not read yet still counts.
 */
const withReplyTimeout = <A>(reply: Effect.Effect<A, unknown>): Effect.Effect<A, unknown> =>
  Effect.raceFirst(
    reply,
    Effect.sleep(replyTimeoutMs).pipe(
      Effect.andThen(Effect.yieldNow),
      Effect.andThen(Effect.yieldNow),
      Effect.andThen(() => new Cause.TimeoutError(`no reply within ${replyTimeoutMs} ms`))
    )
  )

/**
 * Opens a connection to a Redis server for the lifetime of the scope. Fails after 2 s without a connection. The client
 * has no offline queue and does not reconnect, so that commands fail immediately while the server is unavailable. Pings
 * keep an idle connection alive. If 1 s passes without a reply, the client closes the connection, even during the
 * handshake.
 */
const connect = Effect.fnUntraced(function* (url: string) {
  const client = createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: 400,
    socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: false },
    commandOptions: { timeout: 0 }
  })
  /** Fails when the connection is lost. Failing this `Deferred` drops the connection and all pending commands. */
  const lost = yield* Deferred.make<never, unknown>()
  client.on("error", (error) => Deferred.doneUnsafe(lost, Effect.fail(error)))
  // The finalizer does not wait for replies, which a frozen server never sends.
  yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
  yield* attempt(() => client.connect())
  const run = (script: string, key: string, ...args: ReadonlyArray<number>) =>
    attempt(() => client.eval(script, { keys: [key], arguments: args.map(String) }))
  return { run, lost }
})

type Connection = Effect.Success<ReturnType<typeof connect>>

/**
 * Checks that this process can count requests on a connection. Some servers, such as a read-only replica, reply to
 * pings but reject the script. The server compiles the script before its first run, so the reply timeout applies only
 * to the second reply.
 */
const probe = Effect.fnUntraced(function* ({ run }: Connection) {
  const take = run(takeScript, probeKey, Number.MAX_SAFE_INTEGER)
  yield* take
  yield* withReplyTimeout(take)
})

/**
 * Maintains one connection to Redis in the background until the scope closes. Reports in the metric and in the log
 * whether the connection is up. Returns a function that returns the connection, or `undefined` without a connection.
 */
const maintainConnection = Effect.fnUntraced(function* (url: string) {
  const stateLog = makeStateLog(
    {
      failed: "Redis unavailable; each process counts alone",
      restored: "Redis restored; rate limits are shared"
    },
    sharedCounterUp
  )
  const firstAttempt = yield* Deferred.make<void>()
  let current: Connection | undefined

  const setConnection = (connection: Connection | undefined, report: Effect.Effect<void>) =>
    Effect.suspend(() => {
      current = connection
      return Effect.andThen(report, Deferred.succeed(firstAttempt, undefined))
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
 * Counts the requests of each key on the Redis server at `url`, together with all processes that use this server.
 * Counts the requests of the scope "process" in this process alone. Waits at most about 50 ms for a reply. Before a
 * process asks Redis, the process counts the request in memory and enforces the limit. While Redis is unavailable or
 * slow, only the count in memory applies. A key therefore gets at most its limit per process, even if Redis loses all
 * counts.
 */
export const layer = (options: { readonly url: string }): Layer.Layer<RateLimiter> =>
  Layer.effect(
    RateLimiter,
    Effect.gen(function* () {
      const local = makeRateLimiter()
      /** Has the count 1 for each key that has reached its limit in Redis. */
      const rejectedScopes = makeRateLimiter()
      const getConnection = yield* maintainConnection(options.url)

      /** Counts one request of a key in Redis. Returns false only if Redis replies that the key is at its limit. */
      const takeShared = (key: ApiKeyId, limit: number, now: number): Effect.Effect<boolean> =>
        Effect.suspend(() => {
          const connection = getConnection()
          if (connection === undefined) return Effect.succeed(true)
          return withReplyTimeout(connection.run(takeScript, toRedisKey(key, now), limit)).pipe(
            Effect.map((reply) => reply !== 0),
            Effect.catch((error) => Effect.as(Deferred.fail(connection.lost, error), true))
          )
        })

      return {
        isExhausted: (scope, limit, now) =>
          rejectedScopes.isExhausted(scope, 1, now) || local.isExhausted(scope, limit, now),
        take: Effect.fnUntraced(function* (scope, limit, now) {
          if (!(yield* local.take(scope, limit, now))) return false
          if (scope === "process" || (yield* takeShared(scope, limit, now))) return true
          yield* local.refund(scope, now)
          yield* rejectedScopes.take(scope, 1, now)
          return false
        }),
        refund: (scope, now) =>
          Effect.suspend(() => {
            const refundLocal = Effect.andThen(local.refund(scope, now), rejectedScopes.refund(scope, now))
            const connection = getConnection()
            if (scope === "process" || connection === undefined) return refundLocal
            return connection.run(refundScript, toRedisKey(scope, now)).pipe(
              Effect.catch((error) => Deferred.fail(connection.lost, error)),
              Effect.forkDetach({ startImmediately: true }),
              Effect.andThen(refundLocal)
            )
          })
      }
    })
  )
