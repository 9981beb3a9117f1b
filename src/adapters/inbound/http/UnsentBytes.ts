import { type Body, type HttpResponse, WorkspaceShares } from "./HttpMessage.ts"

/** A response with a body of at most this many bytes is always sent. */
const smallBodyBytes = 64 * 1024

/** Counts the bytes of response bodies that clients have not received. A buffer that responses share counts once. */
export class UnsentBytes {
  readonly #shares: WorkspaceShares
  /** The number of unsent responses of each buffer. */
  readonly #users = new Map<Body, number>()

  constructor(maxBytes: number) {
    this.#shares = new WorkspaceShares(maxBytes)
  }

  /** Returns true if a response may be sent. There is always room for a small body. */
  hasRoom(response: HttpResponse): boolean {
    const { length } = response.body
    return (
      length <= smallBodyBytes ||
      this.#users.has(response.body) ||
      this.#shares.hasRoom(response.workspace, length)
    )
  }

  add(response: HttpResponse): void {
    if (this.#addUser(response.body, 1) === 1) this.#shares.add(response.workspace, response.body.length)
  }

  remove(response: HttpResponse): void {
    if (this.#addUser(response.body, -1) === 0) this.#shares.add(response.workspace, -response.body.length)
  }

  /** Adds or removes a response and returns how many share its body. Node copies texts, so texts are never shared. */
  #addUser(body: Body, change: 1 | -1): number {
    if (typeof body === "string") return change === 1 ? 1 : 0
    const users = (this.#users.get(body) ?? 0) + change
    if (users === 0) this.#users.delete(body)
    else this.#users.set(body, users)
    return users
  }
}
