import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ChangeListener } from "../ports/ChangeFeed.ts"

/**
 * The largest number of workspaces that have their own revision. When this number is reached, the next change of any
 * workspace marks all workspaces as changed.
 */
const maxWorkspaces = 10_000

/** The revisions of all workspaces, for implementations of `ChangeFeed`. */
export class WorkspaceRevisions {
  #revision = 0
  #globalRevision = 0
  readonly #byWorkspace = new Map<string, number>()
  readonly #listeners: Array<ChangeListener> = []

  revision(): number {
    return this.#revision
  }

  revisionOf(workspace: string): number {
    return this.#byWorkspace.get(workspace) ?? this.#globalRevision
  }

  invalidate(workspace: string): void {
    if (this.#byWorkspace.size >= maxWorkspaces) this.invalidateAll()
    this.#byWorkspace.set(workspace, ++this.#revision)
    this.notify(workspace as WorkspaceId)
  }

  /** Records that all workspaces may have changed. */
  invalidateAll(): void {
    this.#byWorkspace.clear()
    this.#globalRevision = ++this.#revision
    this.notify(undefined)
  }

  /** Calls a listener after each change of a revision, with the workspace, or with `undefined` for all workspaces. */
  onChange(listener: ChangeListener): void {
    this.#listeners.push(listener)
  }

  /** Calls the listeners. */
  notify(workspace: WorkspaceId | undefined): void {
    for (const listener of this.#listeners) listener(workspace)
  }
}
