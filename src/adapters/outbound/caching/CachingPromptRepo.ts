import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LRUCache } from "lru-cache"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import { type PromptFilter, PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { PageOfItems } from "../../../domain/Page.ts"
import type { PromptSummary, WorkspaceId } from "../../../domain/Prompt.ts"
import { makeSingleFlight } from "./SingleFlight.ts"

type Repo = PromptRepo["Service"]

/** How much the totals that are remembered may weigh, in bytes, and for how long, in milliseconds. */
const maxBytes = 8 * 1024 * 1024
const maxAge = 30_000
/** What a total weighs beside its key. */
const entryBytes = 128

interface Total {
  readonly total: number
  readonly lastChange: number
}

const keyOf = (...parts: ReadonlyArray<unknown>): string => JSON.stringify(parts)

const filterKey = (workspace: WorkspaceId, { folder_id, tag, type }: PromptFilter): string =>
  keyOf(workspace, folder_id, tag, type)

/** A read of another repo, shared by all who ask for the same while nothing of the workspace changes. */
const sharing = <Arguments extends ReadonlyArray<unknown>, A, E>(
  feed: ChangeFeed["Service"],
  read: (workspace: WorkspaceId, ...rest: Arguments) => Effect.Effect<A, E>
) => {
  const share = makeSingleFlight<A, E>()
  return (workspace: WorkspaceId, ...rest: Arguments): Effect.Effect<A, E> =>
    Effect.suspend(() =>
      share(keyOf(workspace, ...rest), feed.revisionOf(workspace), read(workspace, ...rest))
    )
}

/** How many prompts pass a filter is remembered apart from the page, while nothing of the workspace changes. */
const rememberTotals = (feed: ChangeFeed["Service"], list: Repo["list"]) => {
  const totals = new LRUCache<string, Total>({
    maxSize: maxBytes,
    sizeCalculation: (_, key) => 2 * key.length + entryBytes,
    ttl: maxAge
  })
  return Effect.fnUntraced(function* (...[workspace, filter, page]: Parameters<Repo["list"]>) {
    const key = filterKey(workspace, filter)
    const known = totals.get(key)
    const began = feed.revisionOf(workspace)
    if (known !== undefined && known.lastChange === began) {
      const slice = yield* list(workspace, filter, page, known.total)
      // Else the total is of before the change, and the page may be of after it.
      if (feed.revisionOf(workspace) === began) return slice
    }
    const lastChange = feed.revisionOf(workspace)
    const slice: PageOfItems<PromptSummary> = yield* list(workspace, filter, page)
    if (lastChange !== undefined && feed.revisionOf(workspace) === lastChange) {
      totals.set(key, { total: slice.total, lastChange })
    }
    return slice
  })
}

/**
 * Spares another PromptRepo what it was just asked: the totals of lists, and the same read for many at once (DESIGN.md
 * section 7). What a prompt holds is not kept: whole answers are, elsewhere.
 */
export const layer: Layer.Layer<PromptRepo, never, PromptRepo | ChangeFeed> = Layer.effect(
  PromptRepo,
  Effect.gen(function* () {
    const repo = yield* PromptRepo
    const feed = yield* ChangeFeed
    const list = sharing(feed, rememberTotals(feed, repo.list))
    return PromptRepo.of({
      // Who knows the total counts nothing anyway.
      list: (workspace, filter, page, total) =>
        total === undefined ? list(workspace, filter, page) : repo.list(workspace, filter, page, total),
      get: sharing(feed, repo.get),
      getSource: sharing(feed, repo.getSource),
      listVersions: sharing(feed, repo.listVersions),
      getVersion: sharing(feed, repo.getVersion)
    })
  })
)
