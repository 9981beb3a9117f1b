import * as Context from "effect/Context"
import type { WorkspaceId } from "../../domain/Prompt.ts"

/**
 * Port: says whether what was read a moment ago still holds. Changes are numbered as they are heard of. A cache asks
 * for `now` before it reads, and stores what it read only if the workspace's `lastChange` is not later than that; it
 * serves what it stored only while `lastChange` is still the same. Both are undefined while changes can't be heard of:
 * then nothing is stored and nothing served.
 */
export class ChangeFeed extends Context.Service<
  ChangeFeed,
  {
    /** The number of the last change of any workspace. */
    readonly revision: () => number | undefined
    /** The number of the last change of a workspace. */
    readonly revisionOf: (workspace: WorkspaceId) => number | undefined
  }
>()("prompt-retrieval/ChangeFeed") {}

/** How many workspaces' last changes are told apart; beyond that, all count as changed. */
const maxWorkspaces = 10_000

/** The numbers of the changes that a feed hears of. */
export class WorkspaceRevisions {
  #count = 0
  #ofAll = 0
  readonly #byWorkspace = new Map<string, number>()

  revision(): number {
    return this.#count
  }

  revisionOf(workspace: string): number {
    return this.#byWorkspace.get(workspace) ?? this.#ofAll
  }

  /** A workspace has changed. */
  invalidate(workspace: string): void {
    if (this.#byWorkspace.size >= maxWorkspaces) this.invalidateAll()
    this.#byWorkspace.set(workspace, ++this.#count)
  }

  /** Any workspace may have changed. */
  invalidateAll(): void {
    this.#byWorkspace.clear()
    this.#ofAll = ++this.#count
  }
}
