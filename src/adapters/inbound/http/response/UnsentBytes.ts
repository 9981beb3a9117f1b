import type { HttpResponse } from "../HttpMessage.ts"
import { WorkspaceShares } from "../WorkspaceShares.ts"

/** A response with a body of at most this many bytes is always sent. */
const smallBodyBytes = 64 * 1024

const countBytes = ({ body, isPermanent }: HttpResponse): number => (isPermanent === true ? 0 : body.length)

/** Counts the bytes of the response bodies that clients have not received yet. */
export class UnsentBytes {
  readonly #shares: WorkspaceShares

  constructor(maxBytes: number) {
    this.#shares = new WorkspaceShares(maxBytes)
  }

  /** Returns true if a response may be sent. There is always room for a small body. */
  hasRoom(response: HttpResponse): boolean {
    const bytes = countBytes(response)
    return bytes <= smallBodyBytes || this.#shares.hasRoom(response.workspace, bytes)
  }

  add(response: HttpResponse): void {
    this.#shares.add(response.workspace, countBytes(response))
  }

  remove(response: HttpResponse): void {
    this.#shares.add(response.workspace, -countBytes(response))
  }
}
