import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { windowSeconds } from "../../../domain/ApiKey.ts"
import type { RequestCount } from "./InProcessRateLimiter.ts"

/** A counter on a Redis server that many processes share. Each process uses one connection. */
export interface RedisCounter {
  /**
   * Counts one request under `name` and returns the new count. If the count is at `limit`, counts nothing and returns
   * the negated count. If the stored count is below `known.own`, Redis has lost or missed requests, so the count is
   * first raised to `known.total`. The call is atomic, and takes one round trip once the server has the script.
   */
  readonly take: (name: string, limit: number, known: RequestCount) => Effect.Effect<number, Redis.RedisError>
  /** Refunds one request if any was counted. */
  readonly refund: (name: string) => Effect.Effect<void, Redis.RedisError>
  /** Fails when the connection is lost. Failing this `Deferred` drops the connection and all pending commands. */
  readonly lost: Deferred.Deferred<never, unknown>
}

/**
 * The time from the creation of a count until its expiry, in milliseconds: two windows. A count therefore outlives its
 * window, even if the clocks of processes differ by up to a minute.
 */
const expiryMs = 2 * windowSeconds * 1_000

const take = Redis.script(
  (name: string, limit: number, { own, total }: RequestCount) => [name, limit, own, total],
  {
    numberOfKeys: 1,
    lua: `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count < tonumber(ARGV[2]) then
  count = tonumber(ARGV[3])
  redis.call('SET', KEYS[1], count, 'PX', ${expiryMs})
end
if count >= tonumber(ARGV[1]) then return -count end
count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ${expiryMs}) end
return count`
  }
).withReturnType<number>()

const refund = Redis.script((name: string) => [name], {
  numberOfKeys: 1,
  lua: `if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then return redis.call('DECR', KEYS[1]) end return 0`
})

/**
 * Makes options without an offline queue and without reconnects, so that commands fail immediately while the server is
 * unavailable. Pings keep an idle connection alive. If one second passes without a reply, the connection is closed,
 * even during the handshake.
 */
const makeClientOptions = (url: string) => ({
  url,
  disableOfflineQueue: true,
  pingInterval: 400,
  socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: false as const },
  commandOptions: { timeout: 0 }
})

/** Connects to a Redis server until the scope closes. Fails if this takes more than two seconds. */
export const connect = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<RedisCounter, Redis.RedisError, Scope.Scope> {
  // Closing the client waits for replies that a frozen server never sends. The client therefore has a separate scope,
  // which a detached fiber closes. Neither closing the scope of `connect` nor interrupting `connect` waits for that
  // fiber.
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) =>
    Effect.forkDetach(Scope.close(scope, exit))
  )
  const building = yield* Layer.buildWithScope(NodeRedis.layer(makeClientOptions(url)), scope).pipe(
    Effect.provideService(References.MinimumLogLevel, "None"),
    Effect.forkDetach
  )
  const context = yield* Fiber.join(building)
  const { client } = Context.get(context, NodeRedis.NodeRedis)
  yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
  const lost = Deferred.makeUnsafe<never, unknown>()
  client.on("error", (error) => Deferred.doneUnsafe(lost, Effect.fail(error)))
  const redis = Context.get(context, Redis.Redis)
  return { take: redis.eval(take), refund: redis.eval(refund), lost }
})
