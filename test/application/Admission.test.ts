import { assert, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import * as InProcess from "../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Admission, type AdmissionError, type RateLimits } from "../../src/application/Admission.ts"
import { Lifecycle } from "../../src/application/Lifecycle.ts"
import { KeyStore } from "../../src/application/ports/KeyStore.ts"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import {
  ApiNotAllowed,
  Disputed,
  InvalidKey,
  InvalidKeyFormat,
  type KeyRecord,
  KeyRevoked,
  MalformedAuthorization,
  NoOrganization,
  OwnerMustReset,
  PastDue
} from "../../src/domain/ApiKey.ts"
import { BillingStatus, Tier } from "../../src/domain/Billing.ts"
import { RateLimited } from "../../src/domain/RateLimit.ts"
import { toTimestamp } from "../../src/domain/Timestamp.ts"
import type { Workspace } from "../../src/domain/Workspace.ts"
import {
  archive,
  instant,
  type Key,
  key,
  makeTenant,
  newId,
  sample,
  user,
  workspace
} from "../support/archives.ts"
import { makeTest } from "../support/makeTest.ts"

/** The number of key lookups, and the ids of used keys with the times of their use. */
class Lookups extends Context.Service<
  Lookups,
  { count: number; readonly used: Array<readonly [id: string, now: number]> }
>()("test/Lookups") {}

/** The in-memory stores, which record lookups and uses of keys. */
const countingMemory = Layer.effectContext(
  Effect.gen(function* () {
    const keys = yield* KeyStore
    const lookups: Lookups["Service"] = { count: 0, used: [] }
    const count = Effect.sync(() => lookups.count++)
    const find: (typeof keys)["find"] = (hash) => Effect.andThen(count, keys.find(hash))
    const markUsed: (typeof keys)["markUsed"] = (...use) => void lookups.used.push(use)
    return Context.make(KeyStore, { find, markUsed }).pipe(Context.add(Lookups, lookups))
  })
).pipe(Layer.provideMerge(Memory.layer))

const makeLayer = (limits: RateLimits, lifecycle = Lifecycle.serving) =>
  Admission.layer(limits).pipe(
    Layer.provide(Layer.fresh(InProcess.layer)),
    Layer.provideMerge([countingMemory, lifecycle])
  )

const limits = { perKey: 1, perProcess: 1 }

const admit = (token: string | undefined) => Effect.flatMap(Admission, ({ admit }) => admit(token))
const admitKey = ({ plaintext }: Key) => admit(plaintext)

/** Tokens that `admit` and `check` reject without a lookup, each with the expected error. */
const malformedTokens: ReadonlyArray<readonly [string | undefined, AdmissionError]> = [
  [undefined, MalformedAuthorization],
  [`KEY_LIVE_${"a".repeat(64)}`, InvalidKeyFormat],
  [`key_live_${"a".repeat(63)}`, InvalidKey]
]

const booleans = [false, true]

const start = 1_767_225_600_000
const Millis = Schema.Int.check(Schema.isBetween({ minimum: start - 5, maximum: start + 5_000 }))
/** The time between two requests, in milliseconds. */
const Step = Schema.Literals([0, 1, 2, 10, 999, 1_000])

const epoch = instant("1970-01-01T00:00:00.000Z")
/** The times of keys that are active, revoked or expired at the epoch. The test clock starts at the epoch. */
const lifetimes = [
  ["active", {}],
  ["revoked", { revoked_at: epoch }],
  ["expired", { expires_at: epoch }]
] as const

/** Makes a key for every combination of states of key, owner and workspace, with the errors that apply, in order. */
const makeEveryState = () =>
  Tier.literals.flatMap((tier) =>
    BillingStatus.literals.map((billing_status) => {
      const home = workspace({ tier, billing_status })
      const owners = booleans.map((must_reset_password) => user({ must_reset_password }))
      const states = lifetimes.flatMap(([lifetime, times]) =>
        owners.flatMap((owner) =>
          booleans.map((assigned) => ({
            key: key(assigned ? home.id : null, owner, times),
            errors: [
              ...(lifetime === "active" ? [] : [KeyRevoked]),
              ...(owner.must_reset_password ? [OwnerMustReset] : []),
              ...(assigned ? [] : [NoOrganization]),
              ...(tier === "free" ? [ApiNotAllowed] : []),
              ...(billing_status === "disputed" ? [Disputed] : []),
              ...(billing_status === "past_due" || billing_status === "over_limit" ? [PastDue] : [])
            ]
          }))
        )
      )
      return { home, owners, states }
    })
  )

/** Returns the caller whom `admit` returns for a key. */
const toCaller = ({ stored }: Key, home: Workspace) => ({
  keyId: stored.id,
  keyHash: stored.key_hash,
  keyExpiresAt: stored.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(stored.expires_at),
  workspaceId: home.id,
  tier: home.tier
})

const test = makeTest(it.effect, makeLayer(limits))

makeTest(it.effect, makeLayer({ perKey: 0, perProcess: 500 }))(
  "admit and check fail with the first error that applies; if no error applies, only admit checks the rate limits",
  function* () {
    const { admit, check } = yield* Admission
    for (const { home, owners, states } of makeEveryState()) {
      const api_keys = states.map(({ key }) => key.stored)
      yield* Memory.storeArchive(archive({ workspace: home, users: owners, api_keys }))
      for (const { key, errors } of states) {
        const [error] = errors
        const expected = error === undefined ? Result.succeed(toCaller(key, home)) : Result.fail(error)
        assert.deepStrictEqual(yield* Effect.flip(admit(key.plaintext)), error ?? RateLimited("key", 0, 0))
        assert.deepStrictEqual(yield* Effect.result(check(key.plaintext)), expected)
      }
    }
    const unknown = key(null, user())
    for (const run of [admit, check])
      assert.deepStrictEqual(yield* Effect.flip(run(unknown.plaintext)), InvalidKey)
    assert.deepStrictEqual((yield* Lookups).used, [])
  }
)

it.effect.prop(
  "admit and admitAgain admit a key only before its expiry",
  { expires: Millis, steps: Schema.Array(Step) },
  Effect.fnUntraced(
    function* ({ expires, steps }) {
      const { home, key: expiring, archive } = makeTenant({ key: { expires_at: toTimestamp(expires) } })
      yield* Memory.storeArchive(archive)
      const { admitAgain } = yield* Admission
      const caller = toCaller(expiring, home)
      yield* TestClock.setTime(start)
      for (const step of steps) {
        yield* TestClock.adjust(step)
        const now = yield* Clock.currentTimeMillis
        const expected = now < expires ? Result.succeed(caller) : Result.fail(KeyRevoked)
        assert.deepStrictEqual(yield* Effect.result(admitKey(expiring)), expected)
        assert.deepStrictEqual(yield* Effect.result(Effect.as(admitAgain(caller, now), caller)), expected)
      }
    },
    Effect.provide(makeLayer({ perKey: 1_000_000, perProcess: 1_000_000 }))
  )
)

test("admit rejects a key that expires during the lookup of the key", function* () {
  const record: KeyRecord = {
    id: newId(),
    revoked: false,
    expires_at: toTimestamp(1_000),
    owner_must_reset: false,
    workspace: { id: newId(), tier: "solo", billing_status: "active" }
  }
  const slowKeys = Layer.succeed(KeyStore, {
    find: () => Effect.as(TestClock.adjust("1 second"), record),
    markUsed: () => undefined
  })
  const services = Admission.layer(limits).pipe(Layer.provide([slowKeys, InProcess.layer, Lifecycle.serving]))
  const error = yield* Effect.flip(admitKey(key(null, user()))).pipe(Effect.provide(services))
  assert.deepStrictEqual(error, KeyRevoked)
})

test("admit asks its caller after the lookup of the key whether to count the request", function* () {
  const { archive: own, keys } = sample()
  yield* Memory.storeArchive(own)
  const { admit } = yield* Admission
  const lookups = yield* Lookups
  for (let request = 0; request < 3; request++) {
    const lookupsBefore = lookups.count
    yield* admit(keys.active.plaintext, () => lookups.count === lookupsBefore)
  }
  yield* admit(keys.active.plaintext)
  assert.deepStrictEqual((yield* Effect.flip(admitKey(keys.active)))._tag, "RateLimited")
})

test("admit looks up a well-formed key once, and looks up nothing for a missing or malformed token", function* () {
  const { archive: own, keys } = sample()
  yield* Memory.storeArchive(own)
  const { check } = yield* Admission
  const lookups = yield* Lookups
  for (const [token, error] of malformedTokens) {
    assert.deepStrictEqual(yield* Effect.flip(admit(token)), error, token)
    assert.deepStrictEqual(yield* Effect.flip(check(token)), error, token)
  }
  assert.strictEqual(lookups.count, 0)
  yield* admitKey(keys.active)
  assert.strictEqual(lookups.count, 1)
})

test("admit marks a key as used if and only if admit admits the key", function* () {
  const { archive: own, keys } = sample()
  yield* Memory.storeArchive(own)
  const { used } = yield* Lookups
  yield* TestClock.setTime(1_767_225_600_123)
  yield* admitKey(keys.active)
  yield* TestClock.adjust("1 second")
  yield* Effect.flip(admitKey(keys.active))
  for (const other of Object.values(keys)) if (other !== keys.active) yield* Effect.flip(admitKey(other))
  assert.deepStrictEqual(used, [[keys.active.stored.id, 1_767_225_600_123]])
})

makeTest(it.effect, makeLayer({ perKey: 100, perProcess: 100 }))(
  "admitAgain marks a key as used at most once per minute, but again if the clock is set back by a minute or more",
  function* () {
    const { admitAgain } = yield* Admission
    const { used } = yield* Lookups
    const callers = [0, 1, 2].map(() => toCaller(key(null, user()), workspace()))
    yield* admitAgain(callers[0]!, start)
    for (const ms of [59_999, 60_000, 119_998, 119_999, 120_000, 59_999, 119_998, 119_999])
      for (const caller of callers) yield* admitAgain(caller, start + ms)
    const marks = callers.map(({ keyId }) =>
      used.filter(([id]) => id === keyId).map(([, now]) => now - start)
    )
    const laterMarks = [59_999, 119_999, 59_999, 119_999]
    assert.deepStrictEqual(marks, [[0, 60_000, 120_000, ...laterMarks.slice(2)], laterMarks, laterMarks])
  }
)

makeTest(it.effect, makeLayer(limits, Lifecycle.starting))(
  "admit fails with Unavailable for a well-formed key until the service has started, but not while the service drains",
  function* () {
    const lifecycle = yield* Lifecycle
    const { archive: own, keys } = sample()
    yield* Memory.storeArchive(own)
    assert.deepStrictEqual(yield* Effect.flip(admitKey(keys.active)), Unavailable)
    assert.deepStrictEqual(yield* Effect.flip(admit(undefined)), MalformedAuthorization)
    yield* lifecycle.markServing
    yield* lifecycle.markDraining
    yield* admitKey(keys.active)
  }
)
