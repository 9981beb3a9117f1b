import type { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/** The interval at which the revisions of the watched workspaces are compared, in milliseconds. */
const checkIntervalMs = 50

interface Watch {
  readonly workspace: WorkspaceId
  readonly onChange: () => void
  /** The latest known revision of the workspace; undefined if the change feed has been down since the watch started. */
  revision: number | undefined
}

/**
 * Notifies listeners when their workspace changes. While the change feed is down, no listener is notified. When the
 * feed comes up again, every listener is notified, because any workspace may have changed. The timer runs only while
 * there are listeners.
 */
export class ChangeWatcher {
  readonly #feed: ChangeFeed["Service"]
  readonly #watches = new Set<Watch>()
  #timer: NodeJS.Timeout | undefined

  constructor(feed: ChangeFeed["Service"]) {
    this.#feed = feed
  }

  /**
   * From now on, calls `onChange` when a workspace has changed. Several changes within `checkIntervalMs` can cause a
   * single call. Returns the function that removes the listener.
   */
  watch(workspace: WorkspaceId, onChange: () => void): () => void {
    const watch: Watch = { workspace, onChange, revision: this.#feed.revisionOf(workspace) }
    this.#watches.add(watch)
    this.#timer ??= setInterval(() => this.#check(), checkIntervalMs).unref()
    return () => {
      this.#watches.delete(watch)
      if (this.#watches.size > 0) return
      clearInterval(this.#timer)
      this.#timer = undefined
    }
  }

  #check(): void {
    for (const watch of this.#watches) {
      const revision = this.#feed.revisionOf(watch.workspace)
      if (revision === undefined || revision === watch.revision) continue
      watch.revision = revision
      watch.onChange()
    }
  }
}
