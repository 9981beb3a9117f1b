import * as Effect from "effect/Effect"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { BodyError, HttpResponse, Transport } from "../HttpMessage.ts"
import type { BodyReader } from "../request/RequestBody.ts"
import type { TrackedResponse } from "./Connection.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"

/** A client is disconnected if more than this many bytes of a streamed body wait to be sent to it. */
const maxUnsentBytes = 64 * 1024

/** One request and its response on a connection of the server. */
export class Exchange implements Transport {
  readonly #response: TrackedResponse
  readonly #tracker: ConnectionTracker
  readonly #bodies: BodyReader
  #releaseBody: (() => void) | undefined = undefined

  constructor(response: TrackedResponse, tracker: ConnectionTracker, bodies: BodyReader) {
    this.#response = response
    this.#tracker = tracker
    this.#bodies = bodies
  }

  hasRoom(bodyBytes: number, workspace: WorkspaceId | undefined): boolean {
    return this.#tracker.hasRoom(bodyBytes, workspace)
  }

  readBody(maxBytes: number): Effect.Effect<Uint8Array, BodyError> {
    return Effect.callback((resume) => {
      this.#releaseBody = this.#bodies.read(this.#response.req, maxBytes, resume)
    })
  }

  canStream(): boolean {
    return this.#tracker.canStream(this.#response)
  }

  /** Ends the exchange with a response, which `write` writes if it is not streamed. */
  respond(content: HttpResponse, write: (response: TrackedResponse, content: HttpResponse) => void): void {
    const response = this.#response
    // If the reading of a body was given up and the connection stayed open, Node would read the next request as the rest
    // of that body. Node drops the rest of a body that was never read.
    if (this.#releaseBody !== undefined && !response.req.complete) response.shouldKeepAlive = false
    this.#releaseBody?.()
    const { stream } = content
    const canStart = stream !== undefined && this.canStream() && !response.req.socket.destroyed
    response.isStreamed = canStart
    this.#tracker.recordResponse(response, content)
    if (stream === undefined) write(response, content)
    else if (canStart) startStream(response, content, stream)
    else response.req.socket.destroy()
  }

  /** Ends the exchange without a response. */
  abort(): void {
    this.#releaseBody?.()
    this.#tracker.recordResponse(this.#response, undefined)
    this.#response.req.socket.destroy()
  }
}

/**
 * Writes the headers of a streamed response, and starts its body. The response does not delay a shutdown, because the
 * endpoint ends it when the service drains.
 */
const startStream = (
  response: TrackedResponse,
  { status, headers }: HttpResponse,
  stream: NonNullable<HttpResponse["stream"]>
): void => {
  response.writeHead(status, headers as Array<string>)
  response.flushHeaders()
  const stop = stream({
    write: (text) => {
      if (response.writableEnded || response.destroyed) return
      response.write(text)
      if (response.writableLength > maxUnsentBytes) response.destroy()
    },
    end: () => {
      if (!response.writableEnded && !response.destroyed) response.end()
    }
  })
  // Clients may half-close a connection, but a half-close during a streamed response is a disconnect.
  const { socket } = response.req
  const disconnect = (): void => void socket.destroy()
  // An unread request body would pause the connection, and a disconnect would go unnoticed.
  response.req.resume()
  let isStopped = false
  const onClose = (): void => {
    if (isStopped) return
    isStopped = true
    socket.off("end", disconnect).off("close", onClose)
    stop()
  }
  socket.once("end", disconnect)
  // When a connection closes, Node emits `close` only on the response that it is sending.
  socket.once("close", onClose)
  response.once("close", onClose)
  if (socket.readableEnded) disconnect()
}
