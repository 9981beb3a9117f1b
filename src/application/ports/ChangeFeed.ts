import * as Context from "effect/Context"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * Port: reports changes of the database as revisions, so that caches can tell whether a value is still current
 * (`RevisionedCache`). A revision is a number that grows with each change the feed receives. While the feed is down,
 * changes may go unnoticed, and both methods return `undefined`.
 */
export class ChangeFeed extends Context.Service<
  ChangeFeed,
  {
    /** Returns the revision of the last change of any workspace. */
    readonly revision: () => number | undefined
    /** Returns the revision of the last change of a workspace. */
    readonly revisionOf: (workspace: WorkspaceId) => number | undefined
  }
>()("prompt-retrieval/ChangeFeed") {}

/** Maximum number of workspaces with a separate revision. Above it, all workspaces count as changed. */
const maxWorkspaces = 10_000

/** The revisions of all workspaces, for implementations of `ChangeFeed`. */
export class WorkspaceRevisions {
  #revision = 0
  #globalRevision = 0
  readonly #byWorkspace = new Map<string, number>()

  revision(): number {
    return this.#revision
  }

  revisionOf(workspace: string): number {
    return this.#byWorkspace.get(workspace) ?? this.#globalRevision
  }

  /** Records a change of one workspace. */
  invalidate(workspace: string): void {
    if (this.#byWorkspace.size >= maxWorkspaces) this.invalidateAll()
    this.#byWorkspace.set(workspace, ++this.#revision)
  }

  /** Records that any workspace may have changed. */
  invalidateAll(): void {
    this.#byWorkspace.clear()
    this.#globalRevision = ++this.#revision
  }
}
