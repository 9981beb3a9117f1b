import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"

/**
 * Counts the bytes that each workspace holds of a limited memory. A workspace may hold at most as many bytes as stay
 * free, so that one workspace cannot use up the memory of all others. `undefined` stands for the requests without a
 * workspace.
 */
export class WorkspaceShares {
  readonly #maxBytes: number
  readonly #bytesOf = new Map<WorkspaceId | undefined, number>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns true if the workspace may hold this many additional bytes. */
  hasRoom(workspace: WorkspaceId | undefined, bytes: number): boolean {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    return held <= this.#maxBytes - this.#bytes - bytes
  }

  /** Adds to the bytes that the workspace holds. A negative number releases bytes. */
  add(workspace: WorkspaceId | undefined, bytes: number): void {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    this.#bytes += bytes
    if (held === 0) this.#bytesOf.delete(workspace)
    else this.#bytesOf.set(workspace, held)
  }
}
