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

  revision(): number {
    return this.#revision
  }

  revisionOf(workspace: string): number {
    return this.#byWorkspace.get(workspace) ?? this.#globalRevision
  }

  invalidate(workspace: string): void {
    if (this.#byWorkspace.size >= maxWorkspaces) this.invalidateAll()
    this.#byWorkspace.set(workspace, ++this.#revision)
  }

  /** Records that all workspaces may have changed. */
  invalidateAll(): void {
    this.#byWorkspace.clear()
    this.#globalRevision = ++this.#revision
  }
}
