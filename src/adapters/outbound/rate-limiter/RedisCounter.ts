import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { windowSeconds } from "../../../domain/time/RateWindow.ts"
import type { RequestCount } from "./FixedWindowCounter.ts"

/** A counter on a Redis server that many processes share, over one connection. */
export interface RedisCounter {
  /**
   * Counts one request under `name` and returns the new count, or returns the negated count if it is at `limit`. A
   * stored count below `known.own` is incomplete, because Redis lost or missed requests: it is raised to
   * `known.total` first. Takes one atomic round trip.
   */
  readonly take: (name: string, limit: number, known: RequestCount) => Effect.Effect<number, Redis.RedisError>
  /** Refunds one request if any was counted. */
  readonly refund: (name: string) => Effect.Effect<void, Redis.RedisError>
  /** Fails when the connection is lost. Failing it from outside drops the connection and all pending commands. */
  readonly lost: Deferred.Deferred<never, unknown>
}

/** A count expires two windows after its first request: after its window has ended, even if clocks differ. */
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
 * Makes options without an offline queue and without reconnects, so commands fail at once while the server is
 * unavailable. Pings keep an idle connection alive; a second without any reply closes it, even during the handshake.
 */
const makeClientOptions = (url: string) => ({
  url,
  disableOfflineQueue: true,
  pingInterval: 400,
  socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: false as const },
  commandOptions: { timeout: 0 }
})

/** Connects to a Redis server until the scope closes; fails if that takes more than two seconds. */
export const connect = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<RedisCounter, Redis.RedisError, Scope.Scope> {
  // Closing the client waits for replies that a frozen server never sends. So the client is built in, and closed
  // with, a scope of a detached fiber: neither closing this scope nor interrupting `connect` waits for it.
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
