import { hash } from "node:crypto"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../../../application/Admission.ts"
import type { ChangeFeed } from "../../../../application/ports/ChangeFeed.ts"
import { cacheLookups } from "../../../../application/Metrics.ts"
import type { Representation } from "./Representation.ts"
import { isGetOrHead, type HttpRequest } from "../HttpMessage.ts"

/** How much the answers that are kept ready may weigh together, and one alone, in bytes. */
const maxBytes = 32 * 1024 * 1024
const maxEntryBytes = 1024 * 1024
/** What an answer weighs beside its body. */
const entryBytes = 1024
/** How long an answer is kept ready, in milliseconds, however often it is asked for (SPEC.md section 8). */
const maxAge = 30_000

/** A representation that one caller has been answered with. */
export interface CachedResponse {
  readonly caller: AdmittedCaller
  /** The pattern of the route, for the log. */
  readonly route: string
  readonly representation: Representation
  readonly lastChange: number
}

const lookups = cacheLookups("responses")

/** Whose answer to what: the exact bytes of both, of which only a hash is kept; undefined for what never has one. */
const keyOf = (request: HttpRequest): string | undefined => {
  const { authorization } = request.headers
  return authorization === undefined || !isGetOrHead(request)
    ? undefined
    : hash("sha256", `${authorization}\n${request.target}`, "base64url")
}

/** A place for the answer to a request that none was ready for. */
export interface Vacancy {
  /** What the long way has found; it is kept unless its workspace has changed meanwhile. */
  readonly keep: (found: Omit<CachedResponse, "lastChange">) => void
}

const noVacancy: Vacancy = { keep: () => {} }

/**
 * What the long way once answered with 200, kept ready to be sent again while nothing changes in its workspace
 * (DESIGN.md section 7): so all that is left to check of a request is that it comes from the same caller, and to count.
 */
export class ResponseCache {
  readonly #feed: ChangeFeed["Service"]
  readonly #responses = new LRUCache<string, CachedResponse>({
    maxSize: maxBytes,
    maxEntrySize: maxEntryBytes,
    sizeCalculation: ({ representation }) => representation.full.body.length + entryBytes,
    ttl: maxAge
  })

  constructor(feed: ChangeFeed["Service"]) {
    this.#feed = feed
  }

  /** What is ready for a request, if anything is and nothing has changed since; else a place for its answer. */
  find(request: HttpRequest): CachedResponse | Vacancy {
    const key = keyOf(request)
    if (key === undefined) return noVacancy
    const ready = this.#responses.get(key)
    if (ready !== undefined) {
      if (this.#feed.revisionOf(ready.caller.workspaceId) === ready.lastChange) {
        lookups.hit()
        return ready
      }
      lookups.drop()
    } else lookups.miss()
    return this.#vacancy(key)
  }

  /** Made before anything is read. */
  #vacancy(key: string): Vacancy {
    const began = this.#feed.revision()
    return {
      keep: (found) => {
        const lastChange = this.#feed.revisionOf(found.caller.workspaceId)
        if (began === undefined || lastChange === undefined || lastChange > began) return
        this.#responses.set(key, { ...found, lastChange })
      }
    }
  }
}
