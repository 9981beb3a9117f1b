import { hash } from "node:crypto"
import type { IncomingMessage } from "node:http"
import { LRUCache } from "lru-cache"
import type { AdmittedCaller } from "../../application/Admission.ts"
import type { ChangeFeed } from "../../application/ChangeFeed.ts"
import { cacheLookups } from "../../application/Metrics.ts"
import { cachingHeaders } from "./Caching.ts"

/** How much the answers that are kept ready may weigh together, and one alone, in bytes. */
const maxBytes = 64 * 1024 * 1024
const maxEntryBytes = 1024 * 1024
/** What an answer weighs beside its body. */
const entryBytes = 1024
/** How long an answer is kept ready, in milliseconds, however often it is asked for (SPEC.md section 8). */
const maxAge = 30_000

/** A whole answer to one caller's request. */
export interface ReadyResponse {
  readonly caller: AdmittedCaller
  /** The pattern of the route, for the log. */
  readonly route: string
  readonly etag: string
  readonly body: Uint8Array
  /** The headers of 200 and of 304, as `writeHead` takes them. */
  readonly headers: ReadonlyArray<string>
  readonly headersNotModified: ReadonlyArray<string>
  readonly lastChange: number
}

const lookups = cacheLookups("responses")

/** Whose answer to what: the exact bytes of both, of which only a hash is kept. */
const keyOf = (authorization: string, target: string): string =>
  hash("sha256", `${authorization}\n${target}`, "base64url")

const flat = (headers: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(headers).flat()

/** A head that says anything of a body, or of a protocol to change to, takes the long way. */
const isPlain = ({ headers }: IncomingMessage): boolean =>
  headers["content-length"] === undefined &&
  headers["transfer-encoding"] === undefined &&
  headers.expect === undefined &&
  headers.upgrade === undefined

/**
 * Answers of 200 that the long way once gave, kept ready to be sent again while nothing changes in their workspace
 * (DESIGN.md section 7): so all that is left to check of a request is that it comes from the same caller, and to count.
 */
export class ReadyResponses {
  readonly #feed: ChangeFeed["Service"]
  readonly #responses = new LRUCache<string, ReadyResponse>({
    maxSize: maxBytes,
    maxEntrySize: maxEntryBytes,
    sizeCalculation: ({ body }) => body.length + entryBytes,
    ttl: maxAge
  })

  constructor(feed: ChangeFeed["Service"]) {
    this.#feed = feed
  }

  /** What a request has to say before it is answered the long way, for its answer to be kept. */
  begin(): number | undefined {
    return this.#feed.now()
  }

  /** The answer that is ready for a request whose head is in order, if there is one and nothing has changed since. */
  find(request: IncomingMessage): ReadyResponse | undefined {
    const { authorization } = request.headers
    if (authorization === undefined || (request.method !== "GET" && request.method !== "HEAD"))
      return undefined
    const ready = isPlain(request) ? this.#responses.get(keyOf(authorization, request.url!)) : undefined
    if (ready === undefined) {
      lookups.miss()
      return undefined
    }
    if (this.#feed.lastChange(ready.caller.workspaceId) !== ready.lastChange) {
      lookups.drop()
      return undefined
    }
    lookups.hit()
    return ready
  }

  /** Keeps an answer of 200 to a request that began at `began`, unless its workspace has changed meanwhile. */
  keep(
    request: { readonly authorization: string; readonly target: string; readonly began: number | undefined },
    answer: Pick<ReadyResponse, "caller" | "route" | "etag" | "body">
  ): void {
    const { began } = request
    const lastChange = this.#feed.lastChange(answer.caller.workspaceId)
    if (began === undefined || lastChange === undefined || lastChange > began) return
    const caching = { ...cachingHeaders, etag: answer.etag, "x-content-type-options": "nosniff" }
    const entity = { "content-type": "application/json", "content-length": String(answer.body.length) }
    this.#responses.set(keyOf(request.authorization, request.target), {
      ...answer,
      headers: flat({ ...entity, ...caching }),
      headersNotModified: flat(caching),
      lastChange
    })
  }
}
