import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { Address } from "../../../../src/adapters/inbound/http/Address.ts"
import { makeApp } from "../../../../src/adapters/inbound/http/App.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { Admission, defaultRateLimits } from "../../../../src/application/Admission.ts"
import * as CachingKeyStore from "../../../../src/application/cache/CachingKeyStore.ts"
import { FeedState } from "../../../../src/application/cache/FeedState.ts"
import { Outage } from "../../../../src/application/cache/Outage.ts"
import { checkIsUp } from "../../../../src/application/cache/RevisionedCache.ts"
import { Lifecycle } from "../../../../src/application/Lifecycle.ts"
import { Prompts } from "../../../../src/application/Prompts.ts"
import { ChangeFeed } from "../../../../src/application/ports/ChangeFeed.ts"
import { RateLimiter } from "../../../../src/application/ports/RateLimiter.ts"
import { Readiness } from "../../../../src/application/ports/Readiness.ts"
import { sample } from "../../../support/archives.ts"
import { makeTest } from "../../../support/makeTest.ts"
import { outageStatus } from "../../../support/services/outage.ts"

const { archive, keys } = sample()
const request = {
  method: "GET",
  target: `/api/v1/prompts/${archive.prompts[0]!.id}`,
  headers: { authorization: `Bearer ${keys.active.plaintext}` },
  readBody: () => Effect.never
}

const feed = new FeedState(3_000)
const isCounted = Deferred.makeUnsafe<boolean>()
const counts: Array<string> = []
const limiter = RateLimiter.of({
  isExhausted: () => false,
  refund: () => Effect.void,
  take: (scope) => {
    counts.push(scope)
    return checkIsUp(feed) ? Effect.succeed(true) : Deferred.await(isCounted)
  }
})
const adapters = Layer.mergeAll(
  Memory.layer,
  Lifecycle.serving,
  Layer.succeed(RateLimiter, limiter),
  Layer.succeed(ChangeFeed, feed),
  Layer.succeed(Readiness, { check: Effect.void }),
  Layer.succeed(Address, {})
)
const caches = Layer.provideMerge(CachingKeyStore.layer, Outage.layer(300_000))
const useCases = Layer.mergeAll(Prompts.layer, Admission.layer(defaultRateLimits))
const test = makeTest(it.effect, useCases.pipe(Layer.provideMerge(caches), Layer.provideMerge(adapters)))

test("a request counts once, even if the known response is sent while the rate limiter counts the request", function* () {
  yield* Memory.storeArchive(archive)
  const app = yield* makeApp()
  // The first request compiles code for so long that the feed counts as paused.
  for (const _ of [1, 2]) {
    feed.recordContact(feed.observePause())
    yield* app(request)
  }
  counts.length = 0
  feed.markDown()
  const responding = yield* Effect.forkChild(app(request), { startImmediately: true })
  for (let step = 0; step < 6; step++) yield* TestClock.adjust(50)
  const { headers } = yield* Fiber.join(responding)
  yield* Deferred.succeed(isCounted, true)
  yield* TestClock.adjust(0)
  assert.include(headers, outageStatus)
  assert.strictEqual(counts.filter((scope) => scope !== "process").length, 1)
})
