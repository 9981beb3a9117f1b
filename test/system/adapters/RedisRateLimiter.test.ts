import { afterEach, assert, beforeAll, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"
import { layer, sharedCounterUp } from "../../../src/adapters/outbound/rate-limiter/RedisRateLimiter.ts"
import { type CountScope, RateLimiter } from "../../../src/application/ports/RateLimiter.ts"
import type { ApiKeyId } from "../../../src/domain/ApiKey.ts"
import { countAdmitted, newKey, testRateLimiter } from "../../contracts/RateLimiter.ts"
import { sample } from "../../support/archives.ts"
import { send } from "../../support/clients/requests.ts"
import { connectTo, postgresEnv } from "../../support/database/connection.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { makeTest } from "../../support/makeTest.ts"
import { type RedisServer, redisServer } from "../../support/programs/redis.ts"
import { runService, startService } from "../../support/services/startService.ts"

const now = 29_000_000 * 60_000
const toRedisKey = (key: ApiKeyId) => `prompt-retrieval:rate:{${key}}:29000000`

/** Returns the count that Redis has for a key in the minute of `now`. */
const readCount = (redis: RedisServer, key: ApiKeyId): Effect.Effect<number> =>
  Effect.map(redis.ask(`GET ${toRedisKey(key)}`), (reply) => Number(reply.split("\r\n")[1] ?? 0))

/** Expects the count of a key to expire in more than one minute and at most two minutes. */
const expectExpiry = Effect.fnUntraced(function* (redis: RedisServer, key: ApiKeyId) {
  const left = Number((yield* redis.ask(`PTTL ${toRedisKey(key)}`)).slice(1))
  assert.isTrue(left > 60_000 && left <= 120_000, `${left}`)
})

/** Makes a limiter with its own connection and counts, like a separate process. Closing the scope closes the limiter. */
const makeLimiter = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(layer({ url }))), (context) => Context.get(context, RateLimiter))

const sleepLive = (milliseconds: number) => TestClock.withLive(Effect.sleep(milliseconds))

/** Waits until the limiter counts in Redis again. Advances the test clock, and also waits for I/O in real time. */
const waitUntilShared = Effect.fnUntraced(function* (redis: RedisServer, limiter: RateLimiter["Service"]) {
  for (let tries = 0; tries < 100; tries++) {
    const key = newKey()
    yield* limiter.take(key, 1, now)
    if ((yield* readCount(redis, key)) === 1) return
    yield* TestClock.adjust("1 second")
    yield* sleepLive(20)
  }
  assert.fail("the limiter did not return to counting in Redis")
})

const acquire = makeAcquire()
let redis: RedisServer
beforeAll(async () => {
  redis = await acquire(redisServer)
})
afterEach(() => Effect.runPromise(redis.thaw))

testRateLimiter(Layer.unwrap(Effect.sync(() => layer({ url: redis.url }))))

const test = makeTest(it.effect)

test("with Redis, two processes share the limit of a key, even after refunds, but do not share the limit per process", function* () {
  const [one, other] = [yield* makeLimiter(redis.url), yield* makeLimiter(redis.url)]
  const key = newKey()
  const both = (scope: CountScope) =>
    Effect.all([countAdmitted(one, scope, 300, now), countAdmitted(other, scope, 300, now)], {
      concurrency: 2
    })
  const [admittedByOne, admittedByOther] = yield* both(key)
  assert.strictEqual(admittedByOne + admittedByOther, 100)
  assert.strictEqual(yield* readCount(redis, key), 100)
  for (const limiter of [one, other]) assert.isTrue(limiter.isExhausted(key, 100, now))
  assert.deepStrictEqual(yield* both("process"), [100, 100])
  yield* one.refund(key, now)
  assert.isFalse(one.isExhausted(key, 100, now))
  // Redis receives the commands of a connection in order, so Redis receives the refund before this command.
  yield* one.take(newKey(), 100, now)
  assert.strictEqual(yield* countAdmitted(other, key, 2, now), 1)
})

test("after Redis loses its counts, a process still admits no more requests than the limit of a key, and counts only new requests in Redis", function* () {
  const limiter = yield* makeLimiter(redis.url)
  const key = newKey()
  assert.strictEqual(yield* countAdmitted(limiter, key, 20, now), 20)
  yield* expectExpiry(redis, key)
  yield* redis.stop
  yield* redis.start
  yield* waitUntilShared(redis, limiter)
  assert.strictEqual(yield* countAdmitted(limiter, key, 100, now), 80)
  assert.strictEqual(yield* readCount(redis, key), 80)
  yield* expectExpiry(redis, key)
})

test("when Redis goes down, no request fails or waits, and processes share counts again once Redis is up", function* () {
  const running = yield* makeLimiter(redis.url)
  const key = newKey()
  assert.strictEqual(yield* countAdmitted(running, key, 60, now), 60)
  yield* redis.freeze
  // The test clock stands still, so a request that waits for the timeout never ends.
  const inFlight = yield* Effect.forkChild(countAdmitted(running, key, 100, now), {
    startImmediately: true
  })
  yield* sleepLive(20)
  assert.isUndefined(inFlight.pollUnsafe())
  yield* redis.stop
  assert.strictEqual(yield* Fiber.join(inFlight), 40)
  const started = yield* makeLimiter(redis.url)
  assert.strictEqual(yield* countAdmitted(started, key, 150, now), 100)
  assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 0)
  yield* redis.start
  for (const limiter of [running, started]) yield* waitUntilShared(redis, limiter)
  assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 1)
})

test("while Redis is frozen, only the first request waits 50 ms, and processes share counts again after Redis resumes", function* () {
  const limiter = yield* makeLimiter(redis.url)
  const key = newKey()
  assert.strictEqual(yield* countAdmitted(limiter, key, 60, now), 60)
  yield* redis.freeze
  const waiting = yield* Effect.forkChild(limiter.take(key, 100, now), { startImmediately: true })
  yield* TestClock.adjust("49 millis")
  yield* sleepLive(20)
  assert.isUndefined(waiting.pollUnsafe())
  yield* TestClock.adjust("1 millis")
  assert.isTrue(yield* Fiber.join(waiting))
  assert.strictEqual(yield* countAdmitted(limiter, key, 100, now), 39)
  yield* limiter.refund(key, now)
  assert.strictEqual(yield* countAdmitted(limiter, key, 100, now), 1)
  yield* redis.thaw
  yield* waitUntilShared(redis, limiter)
})

test("if Redis replies to pings but cannot count, the limiter counts without Redis until Redis can count again", function* () {
  yield* Effect.addFinalizer(() => redis.ask("CONFIG SET min-replicas-to-write 0"))
  yield* redis.ask("CONFIG SET min-replicas-to-write 1")
  const limiter = yield* makeLimiter(redis.url)
  for (let tries = 0; tries < 5; tries++) {
    assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 0)
    yield* TestClock.adjust("1 second")
    yield* sleepLive(20)
  }
  const key = newKey()
  assert.strictEqual(yield* countAdmitted(limiter, key, 150, now), 100)
  yield* redis.ask("CONFIG SET min-replicas-to-write 0")
  yield* waitUntilShared(redis, limiter)
  assert.strictEqual((yield* Metric.value(sharedCounterUp)).value, 1)
})

makeTest(it.live)(
  "closing a limiter does not wait for a frozen Redis, even during a connection attempt",
  function* () {
    yield* Effect.scoped(
      Effect.gen(function* () {
        const limiter = yield* makeLimiter(redis.url)
        yield* redis.freeze
        yield* limiter.take(newKey(), 100, now)
      })
    )
    yield* Effect.scoped(makeLimiter(redis.url))
  }
)

it("a service with REDIS_URL counts the requests of a key in Redis", async () => {
  const { archive, keys } = sample()
  const env = await acquire(postgresEnv)
  const service = await acquire(runService(() => startService({ ...env, REDIS_URL: redis.url })))
  await (await acquire(connectTo(env))).importArchive(archive)
  expect((await send(service, "/api/v1/prompts", `Bearer ${keys.active.plaintext}`)).status).toBe(200)
  const pattern = `prompt-retrieval:rate:{${keys.active.stored.id}}:*`
  expect(await Effect.runPromise(redis.ask(`KEYS ${pattern}`))).toMatch(/^\*1\r\n/)
})
