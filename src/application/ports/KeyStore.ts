import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId, InvalidKey, KeyHash, KeyRecord } from "../../domain/ApiKey.ts"
import type { Unavailable } from "./Unavailable.ts"

/** Port: the API keys that callers authenticate with. */
export class KeyStore extends Context.Service<
  KeyStore,
  {
    /** Finds a key with its owner and workspace. The key can be revoked, expired or without a workspace. */
    readonly find: (hash: KeyHash) => Effect.Effect<KeyRecord, InvalidKey | Unavailable>
    /**
     * Records that a key was used at `now` (milliseconds since the epoch). A process calls this method at most once per
     * minute for each key. Never waits and never fails. The store writes the time in the background. The time is lost if
     * the process ends before the write.
     */
    readonly markUsed: (id: ApiKeyId, now: number) => void
  }
>()("prompt-retrieval/application/ports/KeyStore") {}
