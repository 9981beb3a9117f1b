import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId, InvalidKey, KeyHash, KeyRecord } from "../../domain/ApiKey.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Port: the keys that callers authenticate with. */
export class KeyStore extends Context.Service<
  KeyStore,
  {
    /**
     * The key with this hash, with its owner, workspace, tier and billing as they are now, in one look-up that
     * touches nothing else (SPEC.md section 5.6). Revoked and unassigned keys are found too.
     */
    readonly find: (hash: KeyHash) => Effect.Effect<KeyRecord, InvalidKey | Unavailable>
    /**
     * Remembers that a key was used at `now` (milliseconds since the epoch). Never waits and never fails: what is
     * remembered is written later, at most once a minute for each key, and lost if the process ends before.
     */
    readonly markUsed: (id: ApiKeyId, now: number) => void
  }
>()("prompt-retrieval/KeyStore") {}
