import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { smallBodyBytes } from "./ConnectionLimits.ts"

/** Counts the bytes of unsent responses by workspace. A response is unsent until its last byte is sent. */
export class UnsentMemory {
  readonly #maxBytes: number
  readonly #bytesOf = new Map<WorkspaceId | undefined, number>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Returns true if a workspace may add a response body of this size. Small bodies always have room. A workspace may
   * hold at most as many bytes as remain free for all other workspaces, so that no workspace takes the share of
   * another.
   */
  hasRoom(bytes: number, workspace: WorkspaceId | undefined): boolean {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    return bytes <= smallBodyBytes || held <= this.#maxBytes - this.#bytes - bytes
  }

  /** Adds the bytes of a response. A negative number removes bytes. */
  add(bytes: number, workspace: WorkspaceId | undefined): void {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    this.#bytes += bytes
    if (held === 0) this.#bytesOf.delete(workspace)
    else this.#bytesOf.set(workspace, held)
  }
}
