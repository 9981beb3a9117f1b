import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LRUCache } from "lru-cache"
import { type CacheEntry, RevisionedCache } from "../../../application/freshness/RevisionedCache.ts"
import { SingleFlight } from "../../../application/freshness/SingleFlight.ts"
import { Outage } from "../../../application/freshness/Outage.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { type PromptFilter, PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

type Repo = PromptRepo["Service"]

const maxBytes = 8 * 1024 * 1024
/** The approximate size of a cache entry in bytes, without the text of its cache key. */
const entryBytes = 128
const maxAgeMs = 30_000

const toKey = (...parts: ReadonlyArray<unknown>): string => JSON.stringify(parts)

/**
 * Returns a function like `read`. Concurrent calls with the same arguments share one read. During an outage, the
 * circuit breaker of `Outage` protects these reads.
 */
const coalesce = <Arguments extends ReadonlyArray<unknown>, A, E>(
  feed: ChangeFeed["Service"],
  outage: Outage["Service"],
  read: (workspace: WorkspaceId, ...args: Arguments) => Effect.Effect<A, E>
) => {
  const reads = new SingleFlight<A, E | Unavailable>(feed, outage.protect)
  return (workspace: WorkspaceId, ...args: Arguments) =>
    reads.run(toKey(workspace, ...args), workspace, read(workspace, ...args))
}

/**
 * Returns a function like `repo.list` with a cache of totals. While the total of a filter is cached, a read of a page
 * does not count the matching prompts.
 */
const cacheTotals = (feed: ChangeFeed["Service"], repo: Repo): Repo["list"] => {
  const totals = new RevisionedCache(
    feed,
    new LRUCache<string, CacheEntry<number>>({
      maxSize: maxBytes,
      sizeCalculation: (_, key) => 2 * key.length + entryBytes,
      ttl: maxAgeMs
    })
  )
  const filterKey = (workspace: WorkspaceId, { folder_id, tag, type }: PromptFilter) =>
    toKey(workspace, folder_id, tag, type)

  return Effect.fnUntraced(function* (workspace, filter, page) {
    const key = filterKey(workspace, filter)
    const found = yield* totals.readWith(key, (total) =>
      Effect.map(repo.listPage(workspace, filter, page), (items) => ({ items, total }))
    )
    if (found !== undefined) return found
    return yield* totals.load(key, repo.list(workspace, filter, page), ({ total }) => ({
      workspace,
      value: total
    }))
  })
}

/**
 * Caches the totals of lists. Identical concurrent reads share one read. Prompt contents are not cached here: the HTTP
 * adapter caches whole responses.
 */
export const layer: Layer.Layer<PromptRepo, never, PromptRepo | ChangeFeed | Outage> = Layer.effect(
  PromptRepo,
  Effect.gen(function* () {
    const repo = yield* PromptRepo
    const feed = yield* ChangeFeed
    const outage = yield* Outage
    return PromptRepo.of({
      list: coalesce(feed, outage, cacheTotals(feed, repo)),
      listPage: coalesce(feed, outage, repo.listPage),
      get: coalesce(feed, outage, repo.get),
      getSource: coalesce(feed, outage, repo.getSource),
      listVersions: coalesce(feed, outage, repo.listVersions),
      getVersion: coalesce(feed, outage, repo.getVersion)
    })
  })
)
