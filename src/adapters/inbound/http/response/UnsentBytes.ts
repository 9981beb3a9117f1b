import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { HttpResponse } from "../HttpMessage.ts"

/** A response with a body of at most this many bytes is always sent. */
const smallBodyBytes = 64 * 1024

const countBytes = ({ body, isPermanent }: HttpResponse): number => (isPermanent === true ? 0 : body.length)

/** Counts the bytes of the response bodies that clients have not received yet. */
export class UnsentBytes {
  readonly #maxBytes: number
  readonly #bytesOf = new Map<WorkspaceId | undefined, number>()
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * Returns true if a response may be sent. There is always room for a small body. The unsent bytes of a workspace may
   * not exceed the bytes that stay free, so that one workspace cannot use up the memory of all others.
   */
  hasRoom(response: HttpResponse): boolean {
    const bytes = countBytes(response)
    const held = (this.#bytesOf.get(response.workspace) ?? 0) + bytes
    return bytes <= smallBodyBytes || held <= this.#maxBytes - this.#bytes - bytes
  }

  add(response: HttpResponse): void {
    this.#change(response.workspace, countBytes(response))
  }

  remove(response: HttpResponse): void {
    this.#change(response.workspace, -countBytes(response))
  }

  #change(workspace: WorkspaceId | undefined, bytes: number): void {
    const held = (this.#bytesOf.get(workspace) ?? 0) + bytes
    this.#bytes += bytes
    if (held === 0) this.#bytesOf.delete(workspace)
    else this.#bytesOf.set(workspace, held)
  }
}
