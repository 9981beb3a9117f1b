import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ChangeFeed } from "../ports/ChangeFeed.ts"

interface InFlightRead<A, E> {
  /** The revision when the read started. */
  readonly revision: number
  /** The outcome of the read; undefined while no second caller waits for the read. */
  outcome: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/**
 * Runs concurrent reads with the same cache key once. A read that is requested after the feed has reported a change
 * never joins one that started before this report. While the change feed is down, reads are not shared.
 *
 * The reads of requests that wait for a change are shared: after a change, all of them read at the same time.
 */
export class SingleFlight<A, E> {
  readonly #feed: ChangeFeed["Service"]
  readonly #inFlight = new Map<string, InFlightRead<A, E>>()

  constructor(feed: ChangeFeed["Service"]) {
    this.#feed = feed
  }

  /**
   * Runs `read`. If a read of the same key is in flight and `workspace` has not changed since that read started, waits
   * for the result of that read instead. If the caller whose read is in flight is interrupted, one of the waiting
   * callers starts the read again.
   */
  run(key: string, workspace: WorkspaceId, read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const revision = this.#feed.revisionOf(workspace)
      if (revision === undefined) return read
      // Uninterruptible between registering the read and attaching its cleanup.
      return Effect.uninterruptibleMask((restore) => {
        const other = this.#inFlight.get(key)
        if (other?.revision === revision) {
          other.outcome ??= Deferred.makeUnsafe()
          return Effect.flatMap(restore(Deferred.await(other.outcome)), (exit) =>
            Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
              ? restore(this.run(key, workspace, read))
              : exit
          )
        }
        const own: InFlightRead<A, E> = { revision, outcome: undefined }
        this.#inFlight.set(key, own)
        return Effect.onExit(restore(read), (exit) => {
          if (this.#inFlight.get(key) === own) this.#inFlight.delete(key)
          return own.outcome === undefined ? Effect.void : Deferred.succeed(own.outcome, exit)
        })
      })
    })
  }
}
