import type { ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { hasUnreadBody, type HttpResponse } from "../HttpMessage.ts"
import type { UnsentBytes } from "../UnsentBytes.ts"
import { connectionLimits } from "./ConnectionLimits.ts"

/** The open connections, their in-flight responses, and the memory that these responses hold. */
export class Connections {
  /** True once the server drains. Each connection then closes after its next response. */
  isDraining = false
  readonly #unsent: UnsentBytes
  /** Maps each connection to its in-flight responses. The content of a response is undefined until it is written. */
  readonly #connections = new Map<Duplex, Map<ServerResponse, HttpResponse | undefined>>()
  /** Maps each in-flight response to the function that releases the body of its request. */
  readonly #bodies = new Map<ServerResponse, () => void>()
  /** Maps each connection whose last response waits for a change to the function that ends the wait. */
  readonly #waits = new Map<Duplex, () => void>()
  #areWaitsAllowed = true

  constructor(unsent: UnsentBytes) {
    this.#unsent = unsent
  }

  /** Tracks a connection until it closes. */
  add(socket: Socket): void {
    const responses = new Map<ServerResponse, HttpResponse | undefined>()
    this.#connections.set(socket, responses)
    // Node removes its error listener before it emits `connect`. Without a listener, an error would end the process.
    socket.on("error", () => {})
    socket.once("close", () => {
      // Node emits `close` only for the response that it is sending, not for the responses behind it.
      for (const response of responses.keys()) this.#release(response)
      this.#connections.delete(socket)
      this.#waits.get(socket)?.()
    })
  }

  /**
   * Tracks the response to a request that has arrived. Returns false if the request must not run, because its
   * connection is closed or closing. Destroys a connection with `maxPipelined` in-flight responses.
   */
  begin(response: ServerResponse): boolean {
    const { socket } = response.req
    const responses = this.#connections.get(socket)
    if (responses === undefined || socket.writableEnded) return false
    if (responses.size >= connectionLimits.maxPipelined) socket.destroy()
    if (socket.destroyed) return false
    this.#waits.get(socket)?.()
    responses.set(response, undefined)
    response.on("close", () => this.#release(response))
    return true
  }

  /** Runs `releaseBody` once the response is sent or its connection closes, whichever comes first. */
  releaseBodyAtEnd(response: ServerResponse, releaseBody: () => void): void {
    if (this.#connections.get(response.req.socket)?.has(response)) this.#bodies.set(response, releaseBody)
    else releaseBody()
  }

  /** Releases the bodies of a connection that sends no valid bytes anymore. A body that is being read is incomplete. */
  releaseBodies(socket: Duplex): void {
    for (const response of this.findResponses(socket)) this.#bodies.get(response)?.()
  }

  /** Counts the memory of a response that is about to be written, until the response is sent. */
  countUnsent(response: ServerResponse, content: HttpResponse): void {
    const responses = this.#connections.get(response.req.socket)
    if (responses === undefined) return
    responses.set(response, content)
    this.#unsent.add(content)
  }

  /** Returns the in-flight responses of a connection. */
  findResponses(socket: Duplex): ReadonlyArray<ServerResponse> {
    return Array.from(this.#connections.get(socket)?.keys() ?? [])
  }

  /**
   * Lets a response wait for a change, during which the connection has no time limit. Calls `release` when another
   * request arrives on the connection, when the connection closes, and when `endWaits` is called. Returns the function
   * that ends the wait, or `undefined` if the response must not wait.
   */
  startWait(response: ServerResponse, release: () => void): (() => void) | undefined {
    const { socket } = response.req
    const isLast = this.findResponses(socket).at(-1) === response
    if (!this.#areWaitsAllowed || !isLast || hasUnreadBody(response.req)) return undefined
    const { timeout = 0 } = socket
    socket.setTimeout(0)
    this.#waits.set(socket, release)
    return () => {
      // Another response of the connection may wait now.
      if (this.#waits.get(socket) !== release) return
      this.#waits.delete(socket)
      socket.setTimeout(timeout)
    }
  }

  /** Ends all waits. No response may wait from now on. */
  endWaits(): void {
    this.#areWaitsAllowed = false
    for (const release of this.#waits.values()) release()
  }

  destroyIdle(): void {
    for (const [socket, responses] of this.#connections) if (responses.size === 0) socket.destroy()
  }

  destroyAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  #release(response: ServerResponse): void {
    const responses = this.#connections.get(response.req.socket)
    const content = responses?.get(response)
    responses?.delete(response)
    this.#bodies.get(response)?.()
    this.#bodies.delete(response)
    if (content !== undefined) this.#unsent.remove(content)
  }
}
