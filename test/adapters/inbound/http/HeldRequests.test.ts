import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { vi } from "vitest"
import { makeHeldRequests } from "../../../../src/adapters/inbound/http/HeldRequests.ts"
import type { HttpResponse } from "../../../../src/adapters/inbound/http/HttpMessage.ts"
import { makeRequestContext } from "../../../../src/adapters/inbound/http/RequestContext.ts"
import type { AdmittedCaller } from "../../../../src/application/Admission.ts"
import type { ApiKeyId, KeyHash } from "../../../../src/domain/ApiKey.ts"
import type { WorkspaceId } from "../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../support/archives.ts"
import { SwitchedFeed } from "../../../support/database/switchedFeed.ts"
import { makeTest } from "../../../support/makeTest.ts"

const workspaceId = newId<WorkspaceId>()
const makeCaller = (): AdmittedCaller => ({
  workspaceId,
  tier: "team",
  keyId: newId<ApiKeyId>(),
  keyHash: "hash" as KeyHash,
  keyExpiresAt: Number.POSITIVE_INFINITY
})

/** Returns the ETag of a version. Versions whose numbers differ by 3 have the same text. */
const toEtag = (version: number): string => String(version % 3)

/** Returns the response to a request with the ETag `etag` when the resource has the version `version`. */
const respondWith = (version: number, etag: string | undefined): HttpResponse =>
  toEtag(version) === etag
    ? { status: 304, headers: ["cache-control", "public"], body: "" }
    : { status: 200, headers: ["cache-control", "public"], body: String(version) }

/** Makes the context of a request that waits. `release` ends the wait, as the transport does. */
const makeWait = (caller: AdmittedCaller, etag: string) => {
  const wait = { isHeld: false, release: () => {} }
  const context = makeRequestContext({
    method: "GET",
    target: "/",
    headers: { authorization: caller.keyId, "if-none-match": etag, prefer: "wait=50" },
    readBody: () => Effect.never,
    startWait: (release) => {
      Object.assign(wait, { isHeld: true, release })
      return () => {
        wait.isHeld = false
      }
    }
  })
  context.caller = caller
  return { context, wait }
}

/**
 * - `request`: a client that waits for no response sends a request with the ETag of its last response
 * - `snapshot`, `finish`: a read takes the current version, and returns this version at the end of the read
 * - `commit`, `report`: a transaction commits, and the feed reports the change later
 * - `down`, `up`: the feed goes down, and is restored
 * - `release`: the transport ends the wait of a client
 */
const kinds = [
  ...(["request", "request", "request", "request", "snapshot", "snapshot", "finish", "finish"] as const),
  ...(["commit", "report", "down", "up", "release", "release", "release", "release"] as const)
] as const
/** A step: its kind, and the number of its client or its read. */
const Step = Schema.Tuple([Schema.Literals(kinds), Schema.Literals([0, 1, 2, 3, 4, 5])])
type Step = typeof Step.Type
const steps = Schema.Array(Step).check(Schema.isMinLength(50), Schema.isMaxLength(60))

interface Read {
  snapshot: number | undefined
  readonly finished: Deferred.Deferred<void>
}

interface SentRequest {
  readonly fiber: Fiber.Fiber<HttpResponse, unknown>
  readonly wait: ReturnType<typeof makeWait>["wait"]
  /** The first version that a 200 may contain. */
  readonly floor: number
  /** The first version that a 304 may confirm. */
  confirmed: number
  /** True once the wait must end. */
  isReleased: boolean
}

interface Client {
  readonly caller: AdmittedCaller
  etag: string
  sent: SentRequest | undefined
}

/**
 * Runs random steps. Checks that no response contains a version from before its request. No 304 may confirm a text that
 * was replaced before the request, or by a change that was reported before the wait ended. In the end, when all changes
 * are reported, every request that is still held must have the ETag of the last version.
 */
const checkSteps = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const feed = new SwitchedFeed()
  let version = 0
  let reported = 0
  let reads: Array<Read> = []
  const read = (etag: string | undefined) =>
    Effect.suspend(() => {
      const own: Read = { snapshot: undefined, finished: Deferred.makeUnsafe() }
      reads.push(own)
      return Effect.map(Deferred.await(own.finished), () => respondWith(own.snapshot!, etag))
    })
  const respondOrHold = yield* makeHeldRequests(({ request }) => read(request.headers["if-none-match"])).pipe(
    Effect.provide(feed.layer)
  )
  // Two of the clients have the same key. After a change, their equal requests share one read.
  const [shared, own] = [makeCaller(), makeCaller()]
  const clients = [shared, shared, own].map((caller): Client => ({ caller, etag: "0", sent: undefined }))

  const checkFinished = (client: Client): void => {
    const exit = client.sent?.fiber.pollUnsafe()
    if (exit === undefined || client.sent === undefined) return
    assert(Exit.isSuccess(exit))
    const { floor, confirmed } = client.sent
    if (exit.value.status === 304) {
      const etags = Array.from({ length: version - confirmed + 1 }, (_, index) => toEtag(confirmed + index))
      assert.include(etags, client.etag)
    } else {
      assert.isAtLeast(Number(exit.value.body), floor)
      client.etag = toEtag(Number(exit.value.body))
    }
    client.sent = undefined
  }

  const markReleased = ({ sent }: Client): void => {
    if (sent === undefined || sent.isReleased || !sent.wait.isHeld) return
    sent.confirmed = Math.max(sent.confirmed, reported)
    sent.isReleased = true
  }

  const apply = Effect.fnUntraced(function* ([step, n]: Step) {
    const client = clients[n % clients.length]!
    const own = reads[n % reads.length]
    if (step === "request" && client.sent === undefined) {
      const { context, wait } = makeWait(client.caller, client.etag)
      const times = { floor: version, confirmed: version }
      const respond = respondOrHold(context, read(client.etag))
      const fiber = yield* Effect.forkChild(respond, { startImmediately: true })
      client.sent = { fiber, wait, ...times, isReleased: false }
    }
    if (step === "release" && client.sent?.wait.isHeld) {
      markReleased(client)
      client.sent.wait.release()
    }
    if ((step === "snapshot" || step === "finish") && own !== undefined) own.snapshot ??= version
    if (step === "finish" && own !== undefined) {
      reads = reads.filter((other) => other !== own)
      yield* Deferred.succeed(own.finished, undefined)
    }
    if (step === "commit") version++
    // A feed that is down misses the change.
    if (step === "report" && reported < version && feed.isUp) {
      reported++
      feed.invalidate(workspaceId)
    }
    if (step === "down") {
      if (feed.isUp) clients.forEach(markReleased)
      feed.markDown()
    }
    if (step === "up" && !feed.isUp) {
      reported = version
      feed.invalidateAll()
      feed.isUp = true
    }
  })

  const run = Effect.fnUntraced(function* (step: Step) {
    yield* apply(step)
    // Lets every fiber run until the fiber waits.
    for (let turn = 0; turn < 5; turn++) yield* Effect.yieldNow
    clients.forEach(checkFinished)
    if (!feed.isUp) assert.isFalse(clients.some(({ sent }) => sent?.wait.isHeld && !sent.isReleased))
  })

  for (const step of steps) yield* run(step)
  yield* run(["up", 0])
  while (reported < version) yield* run(["report", 0])
  while (reads.length > 0) yield* run(["finish", 0])
  for (const { sent, etag } of clients)
    if (sent !== undefined)
      assert.deepStrictEqual([sent.wait.isHeld, sent.isReleased, etag], [true, false, toEtag(version)])
  for (const client of [0, 1, 2] as const) yield* run(["release", client])
  for (const { sent } of clients) assert.isUndefined(sent)
})

const test = makeTest(it.effect)

it.effect.prop(
  "in any order of steps, a request with Prefer: wait misses no edit, and does not wait while the feed is down",
  { steps },
  ({ steps }) => checkSteps(steps),
  { arbitrary: { runs: 2_000 }, timeout: 60_000 }
)

/** Returns a feed and the function `hold`, which sends a request with `Prefer: wait` and the current ETag. */
const setUp = Effect.fnUntraced(function* (respondAgain: Parameters<typeof makeHeldRequests>[0]) {
  const feed = new SwitchedFeed()
  const respondOrHold = yield* makeHeldRequests(respondAgain).pipe(Effect.provide(feed.layer))
  const hold = Effect.fnUntraced(function* (caller = makeCaller()) {
    const { context, wait } = makeWait(caller, "0")
    const respond = respondOrHold(context, Effect.succeed(respondWith(0, "0")))
    return { wait, fiber: yield* Effect.forkChild(respond, { startImmediately: true }) }
  })
  return { feed, hold }
})

test("a process holds at most 5,000 requests, and each request that ends frees its slot", function* () {
  const { hold } = yield* setUp(() => Effect.never)
  const held = yield* Effect.all(Array.from({ length: 5_000 }, () => hold()))
  assert.isTrue(held.every(({ wait }) => wait.isHeld))
  const refused = yield* hold()
  assert.isFalse(refused.wait.isHeld)
  assert.deepStrictEqual(yield* Fiber.join(refused.fiber), respondWith(0, "0"))
  held[0]!.wait.release()
  yield* Fiber.join(held[0]!.fiber)
  assert.isTrue((yield* hold()).wait.isHeld)
})

test("after a change in one workspace, the service does not visit the held requests of other workspaces", function* () {
  const { feed, hold } = yield* setUp(() => Effect.never)
  for (let n = 0; n < 20; n++) yield* hold()
  const next = vi.spyOn(Object.getPrototypeOf(new Set().values()), "next")
  feed.invalidate("other")
  const visited = next.mock.calls.length
  next.mockRestore()
  assert.isBelow(visited, 10)
})

test("the garbage collector can free all data of a held request after the request ends", function* () {
  const { feed, hold } = yield* setUp(() => Effect.succeed(respondWith(1, "0")))
  /** Holds a request until `end`, and returns a weak reference to its caller. */
  const holdUntil = Effect.fnUntraced(function* (end: (release: () => void) => void) {
    const caller = makeCaller()
    const { fiber, wait } = yield* hold(caller)
    assert.isTrue(wait.isHeld)
    end(wait.release)
    yield* Fiber.await(fiber)
    return new WeakRef(caller)
  })
  const ended = [
    yield* holdUntil((release) => release()),
    yield* holdUntil(() => feed.invalidate(workspaceId))
  ]
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc")
  const check = () => {
    collect()
    assert.isTrue(ended.every((caller) => caller.deref() === undefined))
  }
  yield* Effect.promise(() => vi.waitFor(check))
})

test("a held request ends if its key has moved to another workspace, even if the response has not changed", function* () {
  const caller = makeCaller()
  const { feed, hold } = yield* setUp((context) =>
    Effect.sync(() => {
      context.caller = { ...caller, workspaceId: newId<WorkspaceId>() }
      return respondWith(0, "0")
    })
  )
  const { fiber, wait } = yield* hold(caller)
  assert.isTrue(wait.isHeld)
  feed.invalidate(workspaceId)
  const { status, headers } = yield* Fiber.join(fiber)
  assert.deepStrictEqual([status, headers, wait.isHeld], [304, ["cache-control", "no-store"], false])
})
