import type { ServerResponse } from "node:http"
import type { HttpResponse } from "../HttpMessage.ts"
import { hasUnreadBody } from "../request/RequestHead.ts"

/** A client is disconnected when more than this many bytes of a streamed body are unsent. */
const maxUnsentBytes = 64 * 1024

/**
 * Writes the headers of a streamed response, and starts its body. If other responses are in flight, destroys the
 * connection instead, because responses behind a stream would wait for its end. A stream does not delay a shutdown: the
 * endpoint ends it when the service drains.
 */
export const startStream = (
  response: ServerResponse,
  { status, headers, stream }: HttpResponse,
  isAlone: boolean
): void => {
  const { req: request } = response
  if (stream === undefined || hasUnreadBody(request) || !isAlone) {
    request.socket.destroy()
    return
  }
  response.writeHead(status, [...headers, "connection", "close"])
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
  response.once("close", stop)
}
