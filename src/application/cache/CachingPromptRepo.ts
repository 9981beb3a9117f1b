import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { ChangeFeed } from "../ports/ChangeFeed.ts"
import { type PromptFilter, PromptRepo } from "../ports/PromptRepo.ts"
import { cacheLimits } from "./CacheLimits.ts"
import { RevisionedCache } from "./RevisionedCache.ts"
import { SingleFlight } from "./SingleFlight.ts"

type Repo = PromptRepo["Service"]

/** The approximate size of a cached total in bytes, without the text of its cache key. */
const totalBytes = 128

const toKey = (...parts: ReadonlyArray<unknown>): string => JSON.stringify(parts)

/** Wraps `read` so that concurrent calls with the same arguments share one read. */
const coalesce = <Arguments extends ReadonlyArray<unknown>, A, E>(
  feed: ChangeFeed["Service"],
  read: (workspace: WorkspaceId, ...args: Arguments) => Effect.Effect<A, E>
) => {
  const reads = new SingleFlight<A, E>(feed)
  return (workspace: WorkspaceId, ...args: Arguments) =>
    reads.run(toKey(workspace, ...args), workspace, read(workspace, ...args))
}

/**
 * Returns a function like `repo.list` with a cache of totals. While the total of a filter is cached, a read of a page
 * does not count the matching prompts.
 */
const cacheTotals = (feed: ChangeFeed["Service"], repo: Repo): Repo["list"] => {
  const totals = new RevisionedCache<number>(feed, cacheLimits.totals)
  return Effect.fnUntraced(function* (workspace, filter: PromptFilter, page) {
    const key = toKey(workspace, filter.folder_id, filter.tag, filter.type)
    const found = yield* totals.readWith(key, (total) =>
      Effect.map(repo.listPage(workspace, filter, page), (items) => ({ items, total }))
    )
    if (found !== undefined) return found
    return yield* totals.load(key, repo.list(workspace, filter, page), ({ total }) => ({
      workspace,
      value: total,
      size: 2 * key.length + totalBytes
    }))
  })
}

/**
 * Caches the totals of lists. Identical concurrent reads share one read. Prompt contents are not cached here:
 * `ResponseCache` caches whole responses.
 */
export const layer: Layer.Layer<PromptRepo, never, PromptRepo | ChangeFeed> = Layer.effect(
  PromptRepo,
  Effect.gen(function* () {
    const repo = yield* PromptRepo
    const feed = yield* ChangeFeed
    return PromptRepo.of({
      list: coalesce(feed, cacheTotals(feed, repo)),
      listPage: coalesce(feed, repo.listPage),
      listNamed: coalesce(feed, repo.listNamed),
      get: coalesce(feed, repo.get),
      getSource: coalesce(feed, repo.getSource),
      getSources: coalesce(feed, repo.getSources),
      listVersions: coalesce(feed, repo.listVersions),
      getVersion: coalesce(feed, repo.getVersion)
    })
  })
)
