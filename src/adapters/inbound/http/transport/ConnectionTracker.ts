import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"

/** What is under way on one connection. */
interface Connection {
  readonly answers: Array<ServerResponse>
  /** The latest request, unless it has come whole and been answered. */
  latest: IncomingMessage | undefined
  afterwards: (() => void) | undefined
}

/** The answers under way on each connection, for an error must not be written into the middle of one. */
export class ConnectionTracker {
  readonly #byConnection = new Map<Duplex, Connection>()
  #isClosing = false

  #end(response: ServerResponse): void {
    const known = this.#byConnection.get(response.req.socket)
    if (known === undefined) return
    known.answers.splice(known.answers.indexOf(response), 1)
    if (known.latest === response.req && response.req.complete) known.latest = undefined
    if (known.answers.length === 0) known.afterwards?.()
  }

  get connections(): Iterable<Duplex> {
    return this.#byConnection.keys()
  }

  trackConnection(connection: Duplex): void {
    this.#byConnection.set(connection, { answers: [], latest: undefined, afterwards: undefined })
    connection.once("close", () => this.#byConnection.delete(connection))
  }

  trackRequest(request: IncomingMessage, response: ServerResponse): void {
    const known = this.#byConnection.get(request.socket)
    if (known === undefined) return
    known.latest = request
    known.answers.push(response)
    // A protocol to change to is not to be had here, and Node stops reading behind the wish.
    if (request.headers.upgrade !== undefined || this.#isClosing) response.shouldKeepAlive = false
    response.on("close", () => this.#end(response))
  }

  /** From now on each answer whose head is not sent yet is the last of its connection. */
  close(): void {
    this.#isClosing = true
    for (const { answers } of this.#byConnection.values())
      for (const response of answers) response.shouldKeepAlive = false
  }

  isIdle(connection: Duplex): boolean {
    return (this.#byConnection.get(connection)?.answers.length ?? 0) === 0
  }

  /** Whether the connection's latest request has its answer, but not its end: a fault in its body has no answer. */
  hasUnreadBody(connection: Duplex): boolean {
    return this.#byConnection.get(connection)?.latest?.complete === false
  }

  /** Runs once nothing is under way on the connection. */
  whenIdle(connection: Duplex, run: () => void): void {
    const known = this.#byConnection.get(connection)
    if (known === undefined || known.answers.length === 0) run()
    else known.afterwards = run
  }
}
