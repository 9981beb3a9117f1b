import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type AccessError, checkAccess } from "../domain/Billing.ts"
import {
  type ApiKeyId,
  type AuthenticationError,
  authenticate,
  hashApiKey,
  parseApiKey,
  parseAuthorization
} from "../domain/ApiKey.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import { type RateLimited, rateLimited } from "../domain/RateWindow.ts"
import { KeyStore } from "./ports/KeyStore.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { recordRateLimitDenial } from "./Metrics.ts"
import { RateLimiter } from "./ports/RateLimiter.ts"
import { withSpanIfTraced } from "./Spans.ts"
import { Unavailable } from "./ports/Unavailable.ts"

/** Whoever reads prompts: the workspace that it reads in, and that workspace's tier. */
export interface Caller {
  readonly workspaceId: WorkspaceId
  readonly tier: string
}

/** A caller that came with a key. */
export interface AdmittedCaller extends Caller {
  readonly keyId: ApiKeyId
}

export type AdmissionError = AuthenticationError | AccessError | RateLimited | Unavailable

/** Requests a minute (SPEC.md section 8). */
export interface RateLimits {
  readonly perKey: number
  readonly perProcess: number
}

/** The limits of SPEC.md section 8. */
export const defaultRateLimits: RateLimits = { perKey: 100, perProcess: 500 }

const deny = (scope: RateLimited["scope"], limit: number, now: number) => {
  recordRateLimitDenial(scope)
  return Effect.fail(rateLimited(scope, limit, now))
}

/** From an `Authorization` header to a caller, or to the first refusal that applies. */
export class Admission extends Context.Service<
  Admission,
  {
    readonly admit: (authorization: string | undefined) => Effect.Effect<AdmittedCaller, AdmissionError>
    /**
     * The last step of `admit` alone, for a request of a caller who was admitted before and of whom nothing has changed
     * since: counts it at `now` (milliseconds since the epoch) against the limits and marks the key used.
     */
    readonly consumeQuota: (key: ApiKeyId, now: number) => Effect.Effect<void, RateLimited>
  }
>()("prompt-retrieval/Admission") {
  static readonly layer = (limits: RateLimits): Layer.Layer<Admission, never, KeyStore | RateLimiter> =>
    Layer.effect(
      Admission,
      Effect.gen(function* () {
        const keys = yield* KeyStore
        const limiter = yield* RateLimiter
        const lifecycle = yield* Lifecycle

        /**
         * Per-key first, then process-wide, whose denial gives the key its token back (DESIGN.md section 4.9).
         * Strangers and refused tenants never come this far, so they use up nothing. While the process is full no
         * shared counter is asked, and nothing is taken: the answer names the key's limit where this process knows
         * that it is reached too, and the process's where only other instances could know.
         */
        const consumeQuota = Effect.fnUntraced(function* (key: ApiKeyId, now: number) {
          const { perKey, perProcess } = limits
          if (limiter.isKnownExhausted("process", perProcess, now)) {
            return yield* limiter.isKnownExhausted(key, perKey, now)
              ? deny("key", perKey, now)
              : deny("process", perProcess, now)
          }
          if (!(yield* limiter.take(key, perKey, now))) {
            return yield* deny("key", perKey, now)
          }
          if (!(yield* limiter.take("process", perProcess, now))) {
            yield* limiter.refund(key, now)
            return yield* deny("process", perProcess, now)
          }
          keys.markUsed(key, now)
        })

        /** The order of admission, DESIGN.md section 4.4 to 4.9; it is stated here and nowhere else. */
        const admit = withSpanIfTraced("Admission.admit")(
          Effect.fnUntraced(function* (authorization: string | undefined) {
            const token = yield* Effect.fromResult(parseAuthorization(authorization))
            const key = yield* Effect.fromResult(parseApiKey(token))
            if (lifecycle.phase === "starting") return yield* Effect.fail(Unavailable)
            const record = yield* keys.find(hashApiKey(key))
            const workspace = yield* Effect.fromResult(authenticate(record))
            const refusal = checkAccess(workspace)
            if (refusal !== undefined) return yield* Effect.fail(refusal)
            const now = yield* Clock.currentTimeMillis
            yield* consumeQuota(record.id, now)
            return { keyId: record.id, workspaceId: workspace.id, tier: workspace.tier }
          })
        )

        return { admit, consumeQuota: consumeQuota }
      })
    )
}
