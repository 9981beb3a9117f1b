import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { readInstant } from "../../../application/Clocks.ts"
import { ChangeFeed, type LastContact } from "../../../application/ports/ChangeFeed.ts"
import { earlierOf, type Instant } from "../../../domain/Instant.ts"
import type { WorkspaceRevisions } from "../../../application/WorkspaceRevisions.ts"

/** Receives the changes of a store of the host. */
export interface StoreChanges {
  /**
   * Reports a change of a workspace; without an argument, of any workspace. Call only once reads return it. Cached
   * responses of the workspace are not served any more.
   */
  readonly changed: (workspaceId?: string) => void
  /**
   * Reports whether every change is reported from now on. Nothing is cached until the first `setLive(true)`, nor
   * after a `setLive(false)`, for example while the connection that reports changes is lost.
   */
  readonly setLive: (isLive: boolean) => void
}

/** A store of the host that may report its changes. */
export interface WatchableStore {
  /**
   * Starts to report changes, so that responses can be cached. Without this function, no response is cached. Returns
   * the function that ends the reports, which `close` of the API calls.
   */
  readonly watch?: ((changes: StoreChanges) => () => void) | undefined
}

/** Whether a store reports its changes. */
interface StoreState {
  readonly isLive: () => boolean
  /** Returns the last moment at which it did; `undefined` before the first. */
  readonly lastLiveAt: () => Instant | undefined
}

/** Watches a store until the scope closes. */
const watchStore = Effect.fnUntraced(function* (store: WatchableStore, revisions: WorkspaceRevisions) {
  let isLive = false
  let lostAt: Instant | undefined
  const changes: StoreChanges = {
    changed: (workspaceId) => {
      if (workspaceId === undefined) revisions.invalidateAll()
      else revisions.invalidate(workspaceId.toLowerCase())
    },
    setLive: (live) => {
      // Changes may have been missed until now.
      if (live && !isLive) revisions.invalidateAll()
      if (!live && isLive) lostAt = readInstant()
      isLive = live
    }
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => store.watch?.(changes)),
    (stop) =>
      Effect.sync(() => {
        isLive = false
        stop?.()
      })
  )
  return {
    isLive: () => isLive,
    lastLiveAt: () => (isLive ? readInstant() : lostAt)
  } satisfies StoreState
})

/**
 * Adds the changes of stores of the host to another feed, which must report its changes to the same revisions. The
 * feed is up while the other feed is up and every store reports its changes.
 */
export const layer = (
  stores: ReadonlyArray<WatchableStore>,
  revisions: WorkspaceRevisions
): Layer.Layer<ChangeFeed, never, ChangeFeed> =>
  Layer.effect(
    ChangeFeed,
    Effect.gen(function* () {
      const feed = yield* ChangeFeed
      const states = yield* Effect.forEach(stores, (store) => watchStore(store, revisions))
      const isUp = () => states.every(({ isLive }) => isLive())
      const findLastContact = (): LastContact | undefined => {
        const contact = feed.lastContact()
        if (contact === undefined) return undefined
        let { at } = contact
        for (const { lastLiveAt } of states) {
          const liveAt = lastLiveAt()
          if (liveAt === undefined) return undefined
          at = earlierOf(at, liveAt)
        }
        return { at, revisionOf: contact.revisionOf }
      }
      return ChangeFeed.of({
        revision: () => (isUp() ? feed.revision() : undefined),
        revisionOf: (workspace) => (isUp() ? feed.revisionOf(workspace) : undefined),
        lastContact: findLastContact
      })
    })
  )

/** A feed that is always up and reports only what others report to the revisions. */
export const localLayer = (revisions: WorkspaceRevisions): Layer.Layer<ChangeFeed> =>
  Layer.succeed(ChangeFeed, {
    revision: () => revisions.revision(),
    revisionOf: (workspace) => revisions.revisionOf(workspace),
    lastContact: () => ({
      at: readInstant(),
      revisionOf: (workspace) => revisions.revisionOf(workspace)
    })
  })
