import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type { Count } from "../../application/WindowCounter.ts"

/** A counter that many processes share, on the far side of one connection. */
export interface SharedCounter {
  /**
   * Counts one under `name`, unless `limit` are counted there: positive is the count with this one, anything else
   * is the count, negated, that refused it. A stored count below `known.own` is incomplete, because Redis forgot or
   * missed requests: it is raised to `known.total` first. One atomic round trip.
   */
  readonly take: (name: string, limit: number, known: Count) => Effect.Effect<number, Redis.RedisError>
  /** Takes one back, down to none. */
  readonly refund: (name: string) => Effect.Effect<void, Redis.RedisError>
  /** Fails when the connection is lost; who fails it gives the connection up, and every answer that is due fails. */
  readonly lost: Deferred.Deferred<never, unknown>
}

/** A counter lives two minutes from its first count: past its clock minute's end, whatever the clocks of others say. */
const take = Redis.script((name: string, limit: number, { own, total }: Count) => [name, limit, own, total], {
  numberOfKeys: 1,
  lua: `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count < tonumber(ARGV[2]) then
  count = tonumber(ARGV[3])
  redis.call('SET', KEYS[1], count, 'PX', 120000)
end
if count >= tonumber(ARGV[1]) then return -count end
count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], 120000) end
return count`
}).withReturnType<number>()

const refund = Redis.script((name: string) => [name], {
  numberOfKeys: 1,
  lua: `if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then return redis.call('DECR', KEYS[1]) end return 0`
})

/**
 * Nothing waits in the client for a server that is away, and nothing reconnects by itself: a connection is good or
 * lost. Pings, answered, keep a silent one open; a second without any answer ends it, in the handshake too.
 */
const options = (url: string) => ({
  url,
  disableOfflineQueue: true,
  pingInterval: 400,
  socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: false as const },
  commandOptions: { timeout: 0 }
})

/** Connects to a Redis server, within two seconds or not at all, for as long as the scope is open. */
export const connect = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<SharedCounter, Redis.RedisError, Scope.Scope> {
  // The client's own end waits for answers that a frozen server never gives, so nobody waits for that end: neither
  // when the scope closes, nor when whoever connects is interrupted.
  const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) =>
    Effect.forkDetach(Scope.close(scope, exit))
  )
  const building = yield* Layer.buildWithScope(NodeRedis.layer(options(url)), scope).pipe(
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
