import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { offset, type Page } from "../../domain/Page.ts"
import { ChangeFeed } from "../ports/ChangeFeed.ts"
import { type PromptFilter, PromptRepo } from "../ports/PromptRepo.ts"
import { RevisionedCache } from "./RevisionedCache.ts"

type Repo = PromptRepo["Service"]

/** Sizes are in bytes. */
const limits = { maxSize: 8 * 1024 * 1024, maxAgeMs: 30_000 }

/** The approximate size of a cached total in bytes, without the text of its cache key. */
const totalBytes = 128

/**
 * Returns true if a page can belong to a list with `total` items. A cached total is too old for a page if the
 * notification of a change has not arrived yet.
 */
const isPossible = (items: number, total: number, page: Page): boolean =>
  items === Math.max(0, Math.min(page.per_page, total - offset(page)))

/** Returns a function like `repo.list` that counts the matching prompts only if their total is not cached. */
const cacheTotals = (feed: ChangeFeed["Service"], repo: Repo): Repo["list"] => {
  const totals = new RevisionedCache<number>(feed, limits, Object.is)
  return Effect.fnUntraced(function* (workspace, filter: PromptFilter, page) {
    const key = JSON.stringify([workspace, filter.folder_id, filter.tag, filter.type])
    const found = yield* totals.readWith(key, (total) =>
      Effect.map(repo.listPage(workspace, filter, page), (items) => ({ items, total }))
    )
    if (found !== undefined && isPossible(found.items.length, found.total, page)) return found
    const size = 2 * key.length + totalBytes
    return yield* totals.load(key, repo.list(workspace, filter, page), ({ total }) => ({
      workspace,
      value: total,
      size
    }))
  })
}

/**
 * Caches the totals of lists. `App` caches whole responses, which include the contents of prompts. Until the notification
 * of a change arrives, the total of a full page can be older than the items.
 */
export const layer: Layer.Layer<PromptRepo, never, PromptRepo | ChangeFeed> = Layer.effect(
  PromptRepo,
  Effect.gen(function* () {
    const repo = yield* PromptRepo
    const feed = yield* ChangeFeed
    return PromptRepo.of({ ...repo, list: cacheTotals(feed, repo) })
  })
)
