import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type AccessRefusal, gate } from "../domain/Access.ts"
import {
  type ApiKeyId,
  type AuthenticationRefusal,
  authenticate,
  hashApiKey,
  parseApiKey,
  parseAuthorization
} from "../domain/ApiKey.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import { type RateLimited, rateLimited } from "../domain/RateWindow.ts"
import { KeyStore } from "./KeyStore.ts"
import { RateLimiter } from "./RateLimiter.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Whoever reads prompts: the workspace that it reads in, and that workspace's tier. */
export interface Caller {
  readonly workspaceId: WorkspaceId
  readonly tier: string
}

/** A caller that came with a key. */
export interface AdmittedCaller extends Caller {
  readonly keyId: ApiKeyId
}

export type AdmissionRefusal = AuthenticationRefusal | AccessRefusal | RateLimited | Unavailable

/** Requests a minute (SPEC.md section 8). */
export interface RateLimits {
  readonly perKey: number
  readonly perProcess: number
}

/** From an `Authorization` header to a caller, or to the first refusal that applies. */
export class Admission extends Context.Service<
  Admission,
  {
    readonly admit: (authorization: string | undefined) => Effect.Effect<AdmittedCaller, AdmissionRefusal>
  }
>()("prompt-retrieval/Admission") {
  static readonly layer = (limits: RateLimits): Layer.Layer<Admission, never, KeyStore | RateLimiter> =>
    Layer.effect(
      Admission,
      Effect.gen(function* () {
        const keys = yield* KeyStore
        const limiter = yield* RateLimiter

        /** Strangers and refused tenants never come this far, so they use up nothing. */
        const count = Effect.fnUntraced(function* (key: ApiKeyId, now: number) {
          if (!(yield* limiter.take(key, limits.perKey, now))) {
            return yield* Effect.fail(rateLimited("key", limits.perKey, now))
          }
          if (!(yield* limiter.take("process", limits.perProcess, now))) {
            yield* limiter.refund(key, now)
            return yield* Effect.fail(rateLimited("process", limits.perProcess, now))
          }
        })

        /** The order of admission, DESIGN.md section 4.4 to 4.9; it is stated here and nowhere else. */
        const admit = Effect.fn("Admission.admit")(function* (authorization: string | undefined) {
          const token = yield* Effect.fromResult(parseAuthorization(authorization))
          const key = yield* Effect.fromResult(parseApiKey(token))
          const record = yield* keys.find(hashApiKey(key))
          const workspace = yield* Effect.fromResult(authenticate(record))
          const refusal = gate(workspace)
          if (refusal !== undefined) return yield* Effect.fail(refusal)
          const now = yield* Clock.currentTimeMillis
          yield* count(record.id, now)
          keys.markUsed(record.id, now)
          return { keyId: record.id, workspaceId: workspace.id, tier: workspace.tier }
        })

        return { admit }
      })
    )
}
