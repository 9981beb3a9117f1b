import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { layer } from "../../../src/adapters/redis/RateLimiter.ts"
import { sharedCounterUp } from "../../../src/application/Metrics.ts"
import { type Bucket, RateLimiter } from "../../../src/application/RateLimiter.ts"
import type { ApiKeyId } from "../../../src/domain/ApiKey.ts"
import { admitted, newKey, rateLimiterContract } from "../../contracts/RateLimiter.ts"
import { noRedis, type RedisServer, redisServer, slowProxy } from "../../support/redis.ts"

const now = 29_000_000 * 60_000
const nameOf = (key: ApiKeyId) => `prompt-retrieval:rate:{${key}}:29000000`

/** What Redis has counted of a key in the minute of `now`. */
const counted = (redis: RedisServer, key: ApiKeyId): Effect.Effect<number> =>
  Effect.map(redis.ask(`GET ${nameOf(key)}`), (answer) => Number(answer.split("\r\n")[1] ?? 0))

/** A limiter of its own, as another process has one, until the scope ends. */
const limiterAt = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(layer({ url }))), (context) => Context.get(context, RateLimiter))

const realMillis = (milliseconds: number) => TestClock.withLive(Effect.sleep(milliseconds))

/** Lets seconds pass on the test clock, and real I/O happen, until Redis counts again what the limiter admits. */
const untilShared = Effect.fnUntraced(function* (redis: RedisServer, limiter: RateLimiter["Service"]) {
  for (let tries = 0; tries < 100; tries++) {
    const key = newKey()
    yield* limiter.take(key, 1, now)
    if ((yield* counted(redis, key)) === 1) return
    yield* TestClock.adjust("1 second")
    yield* realMillis(20)
  }
  assert.fail("the limiter does not count in Redis again")
})

/** How a take is answered that only the deadline can end: not a moment before 50 ms, and then by this process. */
const takeAtDeadline = Effect.fnUntraced(function* (limiter: RateLimiter["Service"], key: ApiKeyId) {
  const answer = yield* Effect.forkChild(limiter.take(key, 100, now), { startImmediately: true })
  yield* TestClock.adjust("49 millis")
  yield* realMillis(20)
  assert.isUndefined(answer.pollUnsafe())
  yield* TestClock.adjust("1 millis")
  yield* realMillis(20)
  assert.isDefined(answer.pollUnsafe())
  return yield* Fiber.join(answer)
})

describe.skipIf(noRedis !== undefined)(
  `Redis RateLimiter${noRedis === undefined ? "" : ` (skipped: ${noRedis})`}`,
  () => {
    const scope = Scope.makeUnsafe()
    let redis: RedisServer
    beforeAll(async () => {
      redis = await Effect.runPromise(Scope.provide(redisServer, scope))
    })
    afterEach(() => Effect.runPromise(redis.thaw))
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

    rateLimiterContract("redis", Layer.unwrap(Effect.sync(() => layer({ url: redis.url }))))

    describe("shared", () => {
      it.effect("two processes admit the limit of a key together, and each its own process-wide limit", () =>
        Effect.gen(function* () {
          const [one, other] = [yield* limiterAt(redis.url), yield* limiterAt(redis.url)]
          const key = newKey()
          const both = (bucket: Bucket) =>
            Effect.all([admitted(one, bucket, 300, now), admitted(other, bucket, 300, now)], {
              concurrency: 2
            })
          const [ofOne, ofOther] = yield* both(key)
          assert.strictEqual(ofOne + ofOther, 100)
          assert.strictEqual(yield* counted(redis, key), 100)
          assert.deepStrictEqual(yield* both("process"), [100, 100])
        })
      )

      it.effect("what one process gives back, another can take", () =>
        Effect.gen(function* () {
          const [one, other] = [yield* limiterAt(redis.url), yield* limiterAt(redis.url)]
          const key = newKey()
          assert.strictEqual(yield* admitted(one, key, 100, now), 100)
          assert.strictEqual(yield* admitted(other, key, 1, now), 0)
          yield* one.refund(key, now)
          // The refund is on its way before this: one connection keeps the order.
          assert.isTrue(yield* one.take(key, 100, now))
          yield* one.refund(key, now)
          assert.isFalse(one.isFull(key, 100, now))
          yield* one.take(newKey(), 100, now)
          assert.strictEqual(yield* admitted(other, key, 2, now), 1)
        })
      )

      it.effect("a request is one script call, a request for the process none", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          const key = newKey()
          yield* redis.ask("CONFIG RESETSTAT")
          yield* admitted(limiter, key, 150, now)
          yield* admitted(limiter, "process", 150, now)
          const stats = yield* redis.ask("INFO commandstats")
          const calls = Object.fromEntries(
            [...stats.matchAll(/cmdstat_(eval|evalsha|script\|load|get|incr|pexpire|decr):calls=(\d+)/g)].map(
              ([, command, calls]) => [command, Number(calls)]
            )
          )
          assert.deepStrictEqual(calls, { evalsha: 150, get: 150, incr: 100, pexpire: 1 })
        })
      )

      it.effect("Redis forgets a key within two minutes, and not before its minute is over", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          const key = newKey()
          yield* admitted(limiter, key, 10, now + 59_999)
          const left = Number((yield* redis.ask(`PTTL ${nameOf(key)}`)).slice(1))
          assert.isTrue(left > 60_000 && left <= 120_000, `${left}`)
          // A key that is only given back to does not stay for ever either.
          const stranger = newKey()
          yield* limiter.refund(stranger, now)
          yield* limiter.take(key, 100, now)
          assert.strictEqual(yield* redis.ask(`EXISTS ${nameOf(stranger)}`), ":0")
        })
      )
    })

    describe("a Redis that forgets", () => {
      const limit = 200

      /** Two limiters whose workers take from one key until `ended`, counting what each admits. */
      const load = Effect.fnUntraced(function* (key: ApiKeyId, ended: () => boolean) {
        const admitted = [0, 0]
        const limiters = [yield* limiterAt(redis.url), yield* limiterAt(redis.url)]
        const workers = limiters.flatMap((limiter, index) =>
          Array.from({ length: 4 }, () =>
            Effect.gen(function* () {
              while (!ended()) {
                if (yield* limiter.take(key, limit, now)) admitted[index]! += 1
                yield* Effect.sleep("3 millis")
              }
            })
          )
        )
        const running = yield* Effect.forkChild(Effect.all(workers, { concurrency: "unbounded" }), {
          startImmediately: true
        })
        return { admitted, running }
      })

      it.live("restarted 5 times under load, two processes admit hardly more than the limit of a key", () =>
        Effect.gen(function* () {
          let ended = false
          const key = newKey()
          const { admitted, running } = yield* load(key, () => ended)
          for (let restarts = 0; restarts < 5; restarts++) {
            yield* Effect.sleep("50 millis")
            yield* redis.stop
            yield* redis.start
            for (let tries = 0; tries < 200 && (yield* counted(redis, key)) === 0; tries++)
              yield* Effect.sleep("20 millis")
            assert.isAbove(yield* counted(redis, key), 0)
          }
          ended = true
          yield* Fiber.join(running)
          const [one = 0, other = 0] = admitted
          assert.isAtMost(Math.max(one, other), limit, `${admitted}`)
          // Until the first restart ends, each process may use up what it believes is left.
          assert.isTrue(one + other >= limit && one + other < 2 * limit, `${admitted}`)
        })
      )

      it.live(
        "emptied all the time on open connections, each process admits at most the limit of a key",
        () =>
          Effect.gen(function* () {
            let ended = false
            const { admitted, running } = yield* load(newKey(), () => ended)
            for (let times = 0; times < 300; times++) {
              yield* redis.ask("FLUSHALL")
              yield* Effect.sleep("3 millis")
            }
            ended = true
            yield* Fiber.join(running)
            assert.isAtMost(Math.max(...admitted), limit, `${admitted}`)
          })
      )

      it.effect("a process that comes back raises the counter to the total that it knows", () =>
        Effect.gen(function* () {
          const [one, other] = [yield* limiterAt(redis.url), yield* limiterAt(redis.url)]
          const key = newKey()
          assert.strictEqual(yield* admitted(one, key, 20, now), 20)
          assert.strictEqual(yield* admitted(other, key, 30, now), 30)
          yield* redis.stop
          yield* redis.start
          yield* untilShared(redis, one)
          yield* untilShared(redis, other)
          assert.isTrue(yield* other.take(key, 100, now))
          assert.strictEqual(yield* counted(redis, key), 51)
          const left = Number((yield* redis.ask(`PTTL ${nameOf(key)}`)).slice(1))
          assert.isTrue(left > 60_000 && left <= 120_000, `${left}`)
          assert.strictEqual(yield* admitted(one, key, 100, now), 49)
          yield* one.refund(key, now)
          assert.strictEqual(yield* admitted(one, key, 100, now), 1)
        })
      )
    })

    describe("without Redis", () => {
      it.effect("starts, counts in this process, and shares as soon as Redis is there", () =>
        Effect.gen(function* () {
          yield* redis.stop
          const limiter = yield* limiterAt(redis.url)
          const key = newKey()
          assert.strictEqual(yield* admitted(limiter, key, 150, now), 100)
          assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 0)
          yield* redis.start
          yield* untilShared(redis, limiter)
          assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 1)
        })
      )

      it.effect("killed: no request fails or waits; restarted: counting resumes", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          const key = newKey()
          assert.strictEqual(yield* admitted(limiter, key, 60, now), 60)
          yield* redis.stop
          // The test clock stands: whatever waited for a deadline would never end.
          assert.strictEqual(yield* admitted(limiter, key, 100, now), 40)
          yield* redis.start
          yield* untilShared(redis, limiter)
        })
      )

      it.effect("frozen: the deadline decides once, then nobody asks; thawed: counting resumes", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          const key = newKey()
          assert.strictEqual(yield* admitted(limiter, key, 60, now), 60)
          yield* redis.freeze
          assert.isTrue(yield* takeAtDeadline(limiter, key))
          assert.strictEqual(yield* admitted(limiter, key, 100, now), 39)
          yield* limiter.refund(key, now)
          assert.strictEqual(yield* admitted(limiter, key, 100, now), 1)
          yield* redis.thaw
          yield* untilShared(redis, limiter)
        })
      )

      it.effect("slow: the deadline decides once, then nobody asks; quick again: counting resumes", () =>
        Effect.gen(function* () {
          const proxy = yield* slowProxy(redis.port)
          const limiter = yield* limiterAt(proxy.url)
          const key = newKey()
          assert.strictEqual(yield* admitted(limiter, key, 60, now), 60)
          yield* proxy.delay(400)
          assert.isTrue(yield* takeAtDeadline(limiter, key))
          assert.strictEqual(yield* admitted(limiter, key, 100, now), 39)
          yield* proxy.delay(0)
          yield* untilShared(redis, limiter)
        })
      )

      it.effect("a deadline that one request reaches ends the wait of all", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          yield* redis.freeze
          const first = yield* Effect.forkChild(limiter.take(newKey(), 100, now), { startImmediately: true })
          yield* TestClock.adjust("30 millis")
          const second = yield* Effect.forkChild(limiter.take(newKey(), 100, now), { startImmediately: true })
          yield* realMillis(20)
          assert.isUndefined(first.pollUnsafe())
          yield* TestClock.adjust("20 millis")
          yield* realMillis(20)
          assert.deepStrictEqual(
            [first.pollUnsafe(), second.pollUnsafe()],
            [Exit.succeed(true), Exit.succeed(true)]
          )
        })
      )

      it.effect("a request in flight when Redis dies is decided here, at once", () =>
        Effect.gen(function* () {
          const limiter = yield* limiterAt(redis.url)
          yield* redis.freeze
          const answers = yield* Effect.forkChild(admitted(limiter, newKey(), 150, now), {
            startImmediately: true
          })
          yield* realMillis(20)
          assert.isUndefined(answers.pollUnsafe())
          yield* redis.stop
          assert.strictEqual(yield* Fiber.join(answers), 100)
          yield* redis.start
          yield* untilShared(redis, limiter)
        })
      )

      for (const how of ["frozen", "slow"] as const) {
        it.live(`${how}, on real clocks: no request waits for long`, () =>
          Effect.gen(function* () {
            const proxy = yield* slowProxy(redis.port)
            const limiter = yield* limiterAt(proxy.url)
            yield* limiter.take(newKey(), 100, now)
            yield* how === "frozen" ? redis.freeze : proxy.delay(500)
            const times = yield* Effect.forEach(Array.from({ length: 30 }), () =>
              Effect.timed(Effect.delay(limiter.take(newKey(), 100, now), 5)).pipe(
                Effect.map(([time]) => Duration.toMillis(time) - 5)
              )
            )
            // 50 ms and a little on a quiet machine, and that once; the rest is for a busy one.
            assert.isBelow(Math.max(...times), 200, `${times}`)
          })
        )
      }

      it.live("slow from the start: no request ever asks", () =>
        Effect.gen(function* () {
          const proxy = yield* slowProxy(redis.port)
          yield* proxy.delay(70)
          const limiter = yield* limiterAt(proxy.url)
          const key = newKey()
          // Longer than connecting takes at that delay.
          for (let n = 0; n < 80; n++) yield* Effect.delay(limiter.take(key, 100, now), 10)
          assert.strictEqual(yield* counted(redis, key), 0)
          assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 0)
        })
      )

      it.live("closing does not wait for a frozen Redis, connected or connecting", () =>
        Effect.gen(function* () {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const limiter = yield* limiterAt(redis.url)
              yield* redis.freeze
              yield* limiter.take(newKey(), 100, now)
            })
          ).pipe(Effect.timeout("5 seconds"))
          const [time] = yield* Effect.timed(Effect.scoped(limiterAt(redis.url)))
          // The start's own patience, no second more.
          assert.isBelow(Duration.toMillis(time), 1000)
        }).pipe(Effect.ensuring(redis.thaw))
      )
    })
  }
)
