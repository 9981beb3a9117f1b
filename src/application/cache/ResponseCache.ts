import * as Effect from "effect/Effect"
import type { AdmittedCaller } from "../access/Admission.ts"
import type { ChangeFeed } from "../ports/ChangeFeed.ts"
import { cacheLimits } from "./CacheLimits.ts"
import { RevisionedCache } from "./RevisionedCache.ts"

/** The approximate size of an entry without its body, in bytes. */
const entryBytes = 1024

/** A response with the status 200, the caller for whom it was read, and the pattern of the route. */
export interface CachedResponse<Representation> {
  readonly caller: AdmittedCaller
  readonly route: string
  readonly representation: Representation
}

/**
 * Caches whole responses by a hash of the `Authorization` header and the request target. A request passes every check
 * before its response is cached. While nothing in the workspace changes, only the two checks that depend on the time
 * can fail for later requests: the expiry of the key and the rate limits.
 */
export class ResponseCache<Representation> extends RevisionedCache<CachedResponse<Representation>> {
  readonly #countBytes: (representation: Representation) => number
  readonly #isSame: (a: Representation, b: Representation) => boolean

  /**
   * @param countBytes returns the size of the body
   * @param isSame returns true if two representations of a resource are equal
   */
  constructor(
    feed: ChangeFeed["Service"],
    countBytes: (representation: Representation) => number,
    isSame: (a: Representation, b: Representation) => boolean
  ) {
    super(feed, cacheLimits.responses, "responses")
    this.#countBytes = countBytes
    this.#isSame = isSame
  }

  /**
   * Runs `respond`, and caches its response if the workspace has not changed meanwhile. If the result contradicts the
   * last known response, the feed has not reported a change. It is then unknown which responses of the workspace are
   * current, so the cache forgets all of them.
   *
   * @param isContradiction returns true if an error contradicts a response with the status 200
   */
  loadResponse<E>(
    key: string,
    respond: Effect.Effect<CachedResponse<Representation>, E>,
    isContradiction: (error: E) => boolean
  ): Effect.Effect<CachedResponse<Representation>, E> {
    return Effect.suspend(() => {
      const known = this.findLastKnown(key)
      const forget = (): void => {
        // If another request has replaced the known response meanwhile, this result may be older than the new known
        // response.
        if (known !== undefined && this.findLastKnown(key) === known)
          this.invalidate(known.caller.workspaceId)
      }
      const load = this.load(key, respond, (response) => {
        if (known !== undefined && !this.#isSame(known.representation, response.representation)) forget()
        const size = this.#countBytes(response.representation) + entryBytes
        return { workspace: response.caller.workspaceId, value: response, size }
      })
      return known === undefined
        ? load
        : Effect.tapError(load, (error) => Effect.sync(() => isContradiction(error) && forget()))
    })
  }
}
