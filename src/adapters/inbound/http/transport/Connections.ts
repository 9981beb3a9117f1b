import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { hasUnreadBody } from "../HttpMessage.ts"
import type { ConnectionLimits } from "./ConnectionLimits.ts"

const doNothing = (): void => {}

/** An in-flight response. */
interface InFlight {
  /** Releases the memory that the response holds: first the body of its request, later the response's own content. */
  releaseMemory: () => void
  /** Ends the response's wait for a change, if the response waits. */
  releaseWait: () => void
}

const end = ({ releaseMemory, releaseWait }: InFlight): void => {
  releaseWait()
  releaseMemory()
}

/** The open connections, and their in-flight responses in the order of the requests. */
export class Connections {
  /** True once the server drains. Each connection then closes after its next response. */
  isDraining = false
  readonly #limits: ConnectionLimits
  readonly #connections = new Map<Duplex, Map<ServerResponse, InFlight>>()
  #areWaitsAllowed = true

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Tracks a connection until it closes. */
  add(socket: Socket): void {
    const responses = new Map<ServerResponse, InFlight>()
    this.#connections.set(socket, responses)
    // Node removes its error listener before it emits `connect`. Without a listener, an error would end the process.
    socket.on("error", doNothing)
    socket.once("close", () => {
      this.#connections.delete(socket)
      // Some versions of Node emit `close` only for the response that they are sending, not for the responses behind it.
      for (const inFlight of responses.values()) end(inFlight)
      responses.clear()
    })
  }

  /**
   * Tracks the response to a request that has arrived. Returns false if the request must not run, because its
   * connection is closed or closing. Destroys the connection if it already has `maxPipelined` in-flight responses.
   */
  begin(response: ServerResponse): boolean {
    const { socket } = response.req
    const responses = this.#connections.get(socket)
    if (responses === undefined) return false
    if (responses.size >= this.#limits.maxPipelined) socket.destroy()
    if (!socket.writable) return false
    for (const { releaseWait } of responses.values()) releaseWait()
    const inFlight: InFlight = { releaseMemory: doNothing, releaseWait: doNothing }
    responses.set(response, inFlight)
    response.on("close", () => {
      if (responses.delete(response)) end(inFlight)
    })
    return true
  }

  /** Calls `release` once the response holds other memory or is sent, or its connection closes. */
  hold(response: ServerResponse, release: () => void): void {
    const inFlight = this.#connections.get(response.req.socket)?.get(response)
    inFlight?.releaseMemory()
    if (inFlight === undefined) release()
    else inFlight.releaseMemory = release
  }

  /** Returns the in-flight responses of a connection. */
  findResponses(socket: Duplex): ReadonlyArray<ServerResponse> {
    return Array.from(this.#connections.get(socket)?.keys() ?? [])
  }

  /**
   * Implements `startWait` of `HttpRequest`. Calls `release` when another request arrives on the connection, when the
   * connection closes, and when `endWaits` is called.
   */
  startWait(response: ServerResponse, release: () => void): (() => void) | undefined {
    const inFlight = this.#connections.get(response.req.socket)?.get(response)
    const isLast = this.findResponses(response.req.socket).at(-1) === response
    if (!inFlight || !isLast || !this.#areWaitsAllowed || hasUnreadBody(response.req)) return undefined
    inFlight.releaseWait = release
    // Node destroys an inactive connection unless the response that is being sent has a listener for `timeout`.
    response.on("timeout", doNothing)
    return () => {
      inFlight.releaseWait = doNothing
      response.off("timeout", doNothing)
    }
  }

  /** Ends all waits. No response may wait from now on. */
  endWaits(): void {
    this.#areWaitsAllowed = false
    for (const responses of this.#connections.values())
      for (const { releaseWait } of responses.values()) releaseWait()
  }

  /**
   * Sends the last bytes of a connection, and closes the connection after `lingerMs`. Closing a socket with unread
   * bytes at once would reset the connection, and the client might lose the last response.
   */
  closeAfter(socket: Duplex, lastBytes: Uint8Array | string): void {
    socket.end(lastBytes)
    setTimeout(() => socket.destroy(), this.#limits.lingerMs).unref()
  }

  destroyIdle(): void {
    for (const [socket, responses] of this.#connections) if (responses.size === 0) socket.destroy()
  }
}
