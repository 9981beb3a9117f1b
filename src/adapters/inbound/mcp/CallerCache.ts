import { hash } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import { Admission, type AdmissionError, type AdmittedCaller } from "../../../application/access/Admission.ts"
import { type CacheEntry, RevisionedCache } from "../../../application/freshness/Freshness.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"

const maxCallers = 10_000
const maxAgeMs = 30_000

/**
 * Makes the function that admits the caller with a token. While nothing changes in the workspace, a caller who was
 * admitted before passes only the checks that depend on time, as for cached responses of the HTTP API.
 */
export const makeCachedAdmit = Effect.gen(function* () {
  const { admit, admitAgain } = yield* Admission
  const callers = new RevisionedCache(
    yield* ChangeFeed,
    new LRUCache<string, CacheEntry<AdmittedCaller>>({ max: maxCallers, ttl: maxAgeMs })
  )
  return (token: string | undefined): Effect.Effect<AdmittedCaller, AdmissionError> => {
    if (token === undefined) return admit(token)
    const key = hash("sha256", token, "base64url")
    const cached = callers.get(key)
    return cached === undefined
      ? callers.load(key, admit(token), (value) => ({ workspace: value.workspaceId, value }))
      : Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.as(admitAgain(cached, now), cached))
  }
})
