import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import {
  type AccessError,
  type ApiKeyId,
  type AuthenticationError,
  authorize,
  hashApiKey,
  type KeyHash,
  KeyRevoked,
  MalformedAuthorization,
  parseApiKey,
  toExpiryTime
} from "../domain/ApiKey.ts"
import { RateLimited, type RateLimitScope } from "../domain/RateLimit.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { metricRegistry, registerCounter, withSpans } from "./observability/Instrumentation.ts"
import { KeyStore } from "./ports/KeyStore.ts"
import { RateLimiter } from "./ports/RateLimiter.ts"
import { Unavailable } from "./ports/Unavailable.ts"

/** A caller that reads the prompts of its workspace. `tier` is the tier of this workspace. */
export interface Caller {
  readonly workspaceId: WorkspaceId
  readonly tier: string
}

/** A caller that authenticated with an API key. */
export interface AdmittedCaller extends Caller {
  readonly keyId: ApiKeyId
  readonly keyHash: KeyHash
  /** When the key expires, in milliseconds since the epoch. Infinity means that the key never expires. */
  readonly keyExpiresAt: number
}

export type AdmissionError = AuthenticationError | AccessError | RateLimited | Unavailable

/** The rate limits, in requests per minute. */
export interface RateLimits {
  readonly perKey: number
  readonly perProcess: number
}

/** The limits of specification 8. */
export const defaultRateLimits: RateLimits = { perKey: 100, perProcess: 500 }

const registerRejectionCounter = (scope: RateLimitScope) =>
  registerCounter(
    "prompt_retrieval_rate_limit_denials_total",
    "Requests rejected with 429, by the limit that was exceeded: the key's or the process's",
    { bucket: scope }
  )

const countRejection = { key: registerRejectionCounter("key"), process: registerRejectionCounter("process") }

/** The minimum time between two marks of one key, in milliseconds. A mark records that a key was used. */
const markIntervalMs = 60_000

/** Returns true if a mark and `now` are less than a minute apart. A mark can be after `now` if the clock is set back. */
const isRecent = (mark: number | undefined, now: number): boolean =>
  mark !== undefined && Math.abs(now - mark) < markIntervalMs

/**
 * Makes a function that marks a key as used, unless the key has a recent mark. The function remembers the marks of about
 * two minutes. Only admitted requests make marks, so the process's rate limit bounds the number of remembered marks.
 */
const makeMarkUsed = (keys: KeyStore["Service"]): KeyStore["Service"]["markUsed"] => {
  let marks = new Map<ApiKeyId, number>()
  let earlierMarks = new Map<ApiKeyId, number>()
  let firstMark: number | undefined
  return (key, now) => {
    if (isRecent(marks.get(key) ?? earlierMarks.get(key), now)) return
    if (!isRecent(firstMark, now)) {
      earlierMarks = marks
      marks = new Map()
      firstMark = now
    }
    marks.set(key, now)
    keys.markUsed(key, now)
  }
}

/** Authenticates and authorizes callers, and applies the rate limits. */
export class Admission extends Context.Service<Admission>()("prompt-retrieval/application/Admission", {
  make: Effect.fnUntraced(function* ({ perKey, perProcess }: RateLimits) {
    const keys = yield* KeyStore
    const limiter = yield* RateLimiter
    const lifecycle = yield* Lifecycle
    const markUsed = makeMarkUsed(keys)

    const reject = (scope: RateLimitScope, limit: number, now: number) => {
      countRejection[scope].updateUnsafe(1, metricRegistry)
      return Effect.fail(RateLimited(scope, limit, now))
    }

    /**
     * Counts the request against both limits, or against neither limit if one of the limits is exhausted. While the
     * process's limit is exhausted, does not query a shared counter. The error then names the key's limit only if this
     * process knows that the key's limit is exhausted too.
     */
    const consumeQuota = Effect.fnUntraced(function* (key: ApiKeyId, now: number) {
      if (limiter.isExhausted("process", perProcess, now))
        return yield* limiter.isExhausted(key, perKey, now)
          ? reject("key", perKey, now)
          : reject("process", perProcess, now)
      if (!(yield* limiter.take(key, perKey, now))) return yield* reject("key", perKey, now)
      if (!(yield* limiter.take("process", perProcess, now))) {
        yield* limiter.refund(key, now)
        return yield* reject("process", perProcess, now)
      }
      markUsed(key, now)
    })

    /** True once the phase `starting` has ended. The phase never starts again, so `admit` no longer checks the phase. */
    let hasStarted = false

    const admit = Effect.fnUntraced(function* (
      token: string | undefined,
      mustCount: () => boolean = () => true
    ) {
      if (token === undefined) return yield* Effect.fail(MalformedAuthorization)
      const key = yield* Effect.fromResult(parseApiKey(token))
      hasStarted ||= lifecycle.phase() !== "starting"
      if (!hasStarted) return yield* Effect.fail(Unavailable)
      const hash = hashApiKey(key)
      const record = yield* keys.find(hash)
      // Read the clock after the lookup, because the lookup can take long and the key can expire meanwhile.
      const now = yield* Clock.currentTimeMillis
      const workspace = yield* Effect.fromResult(authorize(record, now))
      if (mustCount()) yield* consumeQuota(record.id, now)
      const caller: AdmittedCaller = {
        keyId: record.id,
        keyHash: hash,
        keyExpiresAt: toExpiryTime(record.expires_at),
        workspaceId: workspace.id,
        tier: workspace.tier
      }
      return caller
    })

    return {
      ...(yield* withSpans("Admission", {
        /**
         * Admits the caller with this token. `undefined` means that the token is missing or malformed. The checks run
         * in this order, and the first check that fails determines the error. Each condition is followed by the error
         * of a request that does not meet the condition:
         *
         * 1. The request has a token: `MalformedAuthorization`.
         * 2. The token has the prefix of a key: `InvalidKeyFormat`. The token has the form of a key: `InvalidKey`.
         * 3. The service has started: `Unavailable`.
         * 4. The keys can be read: `Unavailable`. The key exists: `InvalidKey`.
         * 5. The key is neither revoked nor expired by the clock of this process: `KeyRevoked`. The key's owner need not
         *    reset the password: `OwnerMustReset`. The key has a workspace: `NoOrganization`.
         * 6. The workspace's tier includes the API: `ApiNotAllowed`. The workspace's billing status is `active`:
         *    `Disputed` if the status is `disputed`, otherwise `PastDue`.
         * 7. The rate limits, first the key's and then the process's, are not exhausted: `RateLimited`. Requests that
         *    fail an earlier check do not count against the limits.
         *
         * @param mustCount is called before check 7. If `mustCount` returns false, check 7 is skipped.
         */
        admit,

        /** Runs checks 1 to 6 of `admit` again for a caller whose request is still open. Does not count a request. */
        check: (token: string | undefined) => admit(token, () => false)
      })),

      /**
       * Admits a caller that was admitted before and whose workspace has not changed since. Checks only that the key is
       * not expired at `now` (milliseconds since the epoch) and that no rate limit is exhausted. Counts the request
       * against the limits and marks the key as used. If `mustCount` is false, checks only the expiry.
       */
      admitAgain: (
        { keyId, keyExpiresAt }: Pick<AdmittedCaller, "keyId" | "keyExpiresAt">,
        now: number,
        mustCount = true
      ): Effect.Effect<void, typeof KeyRevoked | RateLimited> => {
        if (now >= keyExpiresAt) return Effect.fail(KeyRevoked)
        return mustCount ? consumeQuota(keyId, now) : Effect.void
      }
    }
  })
}) {
  static readonly layer = (
    limits: RateLimits
  ): Layer.Layer<Admission, never, KeyStore | RateLimiter | Lifecycle> =>
    Layer.effect(Admission, Admission.make(limits))
}
