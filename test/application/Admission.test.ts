import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import * as InProcess from "../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { State } from "../../src/adapters/outbound/memory/MemoryState.ts"
import { Admission, type AdmissionError, type RateLimits } from "../../src/application/Admission.ts"
import { KeyStore } from "../../src/application/ports/KeyStore.ts"
import { Unavailable } from "../../src/application/ports/Unavailable.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { ApiNotAllowed, BillingStatus, Disputed, PastDue, Tier } from "../../src/domain/Billing.ts"
import {
  InvalidKey,
  InvalidKeyFormat,
  KeyRevoked,
  MalformedAuthorization,
  NoOrganization,
  OwnerMustReset
} from "../../src/domain/ApiKey.ts"
import { rateLimited } from "../../src/domain/RateWindow.ts"
import { archive, instant, type Key, key, sample, user, workspace } from "../support/archives.ts"

/** How often keys were looked up. */
class LookUps extends Context.Service<LookUps, { count: number }>()("test/LookUps") {
  static readonly layer = Layer.sync(LookUps, () => ({ count: 0 }))
}

/** The keys of the store, each look-up of them counted. */
const counted = Layer.effect(
  KeyStore,
  Effect.gen(function* () {
    const keys = yield* KeyStore
    const lookUps = yield* LookUps
    return {
      ...keys,
      find: (hash) =>
        Effect.suspend(() => {
          lookUps.count++
          return keys.find(hash)
        })
    }
  })
)

const layerOf = (limits: RateLimits) =>
  Admission.layer(limits).pipe(
    Layer.provide(counted),
    Layer.provideMerge(Layer.mergeAll(Memory.layer, LookUps.layer, Layer.fresh(InProcess.layer)))
  )

const limits = { perKey: 100, perProcess: 500 }

const admit = (header: string | undefined) => Effect.flatMap(Admission, ({ admit }) => admit(header))
const admitKey = ({ plaintext }: Key) => admit(`Bearer ${plaintext}`)

/** Headers that are refused before any look-up. */
const formless: ReadonlyArray<readonly [string | undefined, AdmissionError]> = [
  [undefined, MalformedAuthorization],
  ["", MalformedAuthorization],
  ["Basic eDp5", MalformedAuthorization],
  ["Bearer a, Bearer b", MalformedAuthorization],
  ["Bearer token", InvalidKeyFormat],
  [`Bearer KEY_LIVE_${"a".repeat(64)}`, InvalidKeyFormat],
  ["Bearer key_live_", InvalidKey],
  [`Bearer key_live_${"A".repeat(64)}`, InvalidKey],
  [`Bearer key_live_${"a".repeat(63)}`, InvalidKey]
]

const booleans = [false, true]

/** A key for every state that key, owner and workspace can be in, and the refusals that apply to it, in order. */
const everyState = () =>
  Tier.literals.flatMap((tier) =>
    BillingStatus.literals.map((billing_status) => {
      const home = workspace({ tier, billing_status })
      const owners = booleans.map((must_reset_password) => user({ must_reset_password }))
      const states = booleans.flatMap((revoked) =>
        owners.flatMap((owner) =>
          booleans.map((assigned) => ({
            key: key(assigned ? home.id : null, owner, {
              revoked_at: revoked ? instant("2026-01-01T00:00:00.000Z") : null
            }),
            refusals: [
              ...(revoked ? [KeyRevoked] : []),
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

const load = Effect.fnUntraced(function* (workspaces: ReturnType<typeof everyState>) {
  const { importArchive } = yield* WorkspaceStore
  for (const { home, owners, states } of workspaces) {
    yield* importArchive(
      archive({ workspace: home, users: owners, api_keys: states.map(({ key }) => key.stored) })
    )
  }
})

describe("admission", () => {
  it.effect("refuses with the first of all that applies, limits last", () =>
    Effect.gen(function* () {
      const workspaces = everyState()
      yield* load(workspaces)
      for (const { key, refusals } of workspaces.flatMap(({ states }) => states)) {
        assert.deepStrictEqual(
          yield* Effect.flip(admitKey(key)),
          refusals[0] ?? rateLimited("key", 0, 0),
          JSON.stringify(refusals)
        )
      }
    }).pipe(Effect.provide(layerOf({ perKey: 0, perProcess: 500 })))
  )

  it.effect("admits with the key, its workspace and its tier, where nothing applies", () =>
    Effect.gen(function* () {
      const workspaces = everyState()
      yield* load(workspaces)
      let admitted = 0
      for (const { home, states } of workspaces) {
        for (const { key } of states.filter(({ refusals }) => refusals.length === 0)) {
          assert.deepStrictEqual(yield* admitKey(key), {
            keyId: key.stored.id,
            workspaceId: home.id,
            tier: home.tier
          })
          admitted++
        }
      }
      assert.strictEqual(admitted, 2)
    }).pipe(Effect.provide(layerOf(limits)))
  )

  it.effect("looks nothing up for a header or a token of the wrong form, and each key once", () =>
    Effect.gen(function* () {
      const { archive: own, keys } = sample()
      yield* (yield* WorkspaceStore).importArchive(own)
      const lookUps = yield* LookUps
      for (const [header, refusal] of formless) {
        assert.deepStrictEqual(yield* Effect.flip(admit(header)), refusal, header)
      }
      assert.strictEqual(lookUps.count, 0)
      assert.deepStrictEqual(yield* Effect.flip(admitKey(key(own.workspace.id, user()))), InvalidKey)
      assert.strictEqual(lookUps.count, 1)
      yield* admit(`bEARER   ${keys.active.plaintext}`)
      assert.strictEqual(lookUps.count, 2)
    }).pipe(Effect.provide(layerOf(limits)))
  )

  it.effect("counts neither strangers nor refused tenants", () =>
    Effect.gen(function* () {
      const workspaces = everyState()
      yield* load(workspaces)
      const states = workspaces.flatMap(({ states }) => states)
      for (const [header] of formless) yield* Effect.flip(admit(header))
      yield* Effect.flip(admitKey(key(null, user())))
      for (const { key, refusals } of states) {
        if (refusals.length > 0) yield* Effect.flip(admitKey(key))
      }
      const [one, other] = states.filter(({ refusals }) => refusals.length === 0)
      yield* admitKey(one!.key)
      assert.deepStrictEqual(yield* Effect.flip(admitKey(other!.key)), rateLimited("process", 1, 0))
    }).pipe(Effect.provide(layerOf({ perKey: 1, perProcess: 1 })))
  )

  it.effect("admits 100 a minute for each key and 500 for the process, to the request", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 0, 1, 12, 0, 12, 345))
      const [home, owner] = [workspace(), user()]
      const keys = Array.from({ length: 6 }, () => key(home.id, owner))
      const api_keys = keys.map(({ stored }) => stored)
      yield* (yield* WorkspaceStore).importArchive(archive({ workspace: home, users: [owner], api_keys }))
      const [first, ...rest] = keys as [Key, ...Array<Key>]
      const last = rest.pop()!

      yield* Effect.repeat(admitKey(first), { times: 99 })
      const ofKey = { _tag: "RateLimited", scope: "key", limit: 100 } as const
      assert.deepStrictEqual(yield* Effect.flip(admitKey(first)), { ...ofKey, retry_after: 48 })
      for (const other of rest) yield* Effect.repeat(admitKey(other), { times: 99 })
      const ofProcess = { _tag: "RateLimited", scope: "process", limit: 500 } as const
      assert.deepStrictEqual(yield* Effect.flip(admitKey(last)), { ...ofProcess, retry_after: 48 })

      yield* TestClock.adjust("47654 millis")
      assert.deepStrictEqual(yield* Effect.flip(admitKey(last)), { ...ofProcess, retry_after: 1 })
      assert.deepStrictEqual(yield* Effect.flip(admitKey(first)), { ...ofKey, retry_after: 1 })
      yield* TestClock.adjust("1 millis")
      yield* Effect.repeat(admitKey(last), { times: 99 })
      assert.deepStrictEqual(yield* Effect.flip(admitKey(last)), { ...ofKey, retry_after: 60 })
    }).pipe(Effect.provide(layerOf(limits)))
  )

  it.effect("gives the key its request back when the process is full", () =>
    Effect.gen(function* () {
      const { archive: own, keys } = sample()
      yield* (yield* WorkspaceStore).importArchive(own)
      yield* admitKey(keys.active)
      for (let i = 0; i < 5; i++) {
        assert.deepStrictEqual(yield* Effect.flip(admitKey(keys.second)), rateLimited("process", 1, 0))
      }
    }).pipe(Effect.provide(layerOf({ perKey: 2, perProcess: 1 })))
  )

  it.effect("remembers the use of a key that it admitted, and of no other", () =>
    Effect.gen(function* () {
      const { archive: own, keys } = sample()
      yield* (yield* WorkspaceStore).importArchive(own)
      const { lastUsed } = yield* State
      yield* TestClock.setTime(1_767_225_600_123)
      yield* admitKey(keys.active)
      yield* TestClock.adjust("1 second")
      yield* Effect.flip(admitKey(keys.active))
      for (const { stored, ...refused } of Object.values(keys)) {
        if (stored.id !== keys.active.stored.id) yield* Effect.flip(admitKey({ stored, ...refused }))
      }
      assert.deepStrictEqual([...lastUsed], [[keys.active.stored.id, 1_767_225_600_123]])
    }).pipe(Effect.provide(layerOf({ perKey: 1, perProcess: 1 })))
  )

  it.effect("says so where the keys can't be reached", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* Effect.flip(admitKey(key(null, user()))), Unavailable)
    }).pipe(
      Effect.provide(
        Admission.layer(limits).pipe(
          Layer.provide(
            Layer.succeed(KeyStore, { find: () => Effect.fail(Unavailable), markUsed: () => undefined })
          ),
          Layer.provide(InProcess.layer)
        )
      )
    )
  )
})
