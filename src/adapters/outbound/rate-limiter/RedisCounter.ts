import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type CommandParser, createClient, defineScript } from "redis"
import { windowSeconds } from "../../../domain/ApiKey.ts"
import type { RequestCount } from "./InProcessRateLimiter.ts"

/** A counter on a Redis server that many processes share. Each process uses one connection. */
export interface RedisCounter {
  /**
   * Counts one request under `name` and returns the new count. If the count is at `limit`, counts nothing and returns
   * the negated count. If the stored count is below `known.own`, Redis has lost or missed requests, so the count is
   * first raised to `known.total`. The call is atomic, and takes one round trip once the server has the script.
   */
  readonly take: (name: string, limit: number, known: RequestCount) => Effect.Effect<number, unknown>
  /** Refunds one request if any was counted. */
  readonly refund: (name: string) => Effect.Effect<number, unknown>
  /** Fails when the connection is lost. Failing this `Deferred` drops the connection and all pending commands. */
  readonly lost: Deferred.Deferred<never, unknown>
}

/**
 * The time from the creation of a count until its expiry, in milliseconds: two windows. A count therefore outlives its
 * window, even if the clocks of processes differ by up to a minute.
 */
const expiryMs = 2 * windowSeconds * 1_000

const makeScript = (script: string) =>
  defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: script,
    parseCommand: (parser: CommandParser, name: string, ...args: ReadonlyArray<number>) => {
      parser.pushKey(name)
      parser.push(...args.map(String))
    },
    transformReply: (count: number) => count
  })

const scripts = {
  takeRequest: makeScript(`
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count < tonumber(ARGV[2]) then
  count = tonumber(ARGV[3])
  redis.call('SET', KEYS[1], count, 'PX', ${expiryMs})
end
if count >= tonumber(ARGV[1]) then return -count end
count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ${expiryMs}) end
return count`),
  refundRequest: makeScript(
    `if tonumber(redis.call('GET', KEYS[1]) or '0') > 0 then return redis.call('DECR', KEYS[1]) end return 0`
  )
}

const attempt = <A>(run: () => Promise<A>): Effect.Effect<A, unknown> =>
  Effect.tryPromise({ try: run, catch: (error) => error })

/**
 * Connects to a Redis server until the scope closes. Fails if this takes more than two seconds. Has no offline queue and
 * no reconnects, so that commands fail immediately while the server is unavailable. Pings keep an idle connection alive.
 * If one second passes without a reply, the connection is closed, even during the handshake.
 */
export const connect = Effect.fnUntraced(function* (
  url: string
): Effect.fn.Return<RedisCounter, unknown, Scope.Scope> {
  const client = createClient({
    url,
    scripts,
    disableOfflineQueue: true,
    pingInterval: 400,
    socket: { connectTimeout: 1000, socketTimeout: 1000, reconnectStrategy: false },
    commandOptions: { timeout: 0 }
  })
  const lost = Deferred.makeUnsafe<never, unknown>()
  client.on("error", (error) => Deferred.doneUnsafe(lost, Effect.fail(error)))
  // Does not wait for replies, which a frozen server never sends.
  yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
  yield* attempt(() => client.connect())
  return {
    take: (name, limit, { own, total }) => attempt(() => client.takeRequest(name, limit, own, total)),
    refund: (name) => attempt(() => client.refundRequest(name)),
    lost
  }
})
