import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { MountedEndpoint, MountedResponse, StreamedResponse } from "../../contract/MountedEndpoint.ts"
import { type HasRoom, type HttpResponse, withCommonHeaders } from "../../contract/HttpMessage.ts"
import { recordRequest } from "../observability/RequestLog.ts"
import { inSpan, checkIsTraced } from "../observability/Tracing.ts"
import { chooseRequestId, parseBearerToken } from "../request/RequestHead.ts"
import type { TrackedResponse } from "./Connection.ts"
import type { ConnectionTracker } from "./ConnectionTracker.ts"
import { BodyReader } from "../request/RequestBody.ts"

/** A client is disconnected if more than this many bytes of a streamed body wait to be sent to it. */
const maxUnsentBytes = 64 * 1024

const isStreamed = (response: MountedResponse["response"]): response is StreamedResponse =>
  "start" in response

/**
 * Writes a streamed response. The response does not delay a shutdown, because the endpoint ends it when the service
 * drains.
 */
const writeStream = (
  response: TrackedResponse,
  { status, headers, start }: StreamedResponse,
  requestId: string
): void => {
  const { headers: allHeaders } = withCommonHeaders({ status, headers, body: "" }, requestId)
  response.writeHead(status, allHeaders as Array<string>)
  response.flushHeaders()
  const stop = start({
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

const findStatus = ({ response }: MountedResponse): number => response.status

export const makeMountedResponder = (
  endpoint: NonNullable<MountedEndpoint["Service"]>,
  tracker: ConnectionTracker,
  enqueueResponse: (response: TrackedResponse, content: HttpResponse) => void
) =>
  Effect.gen(function* () {
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const isTraced = yield* checkIsTraced
    const bodies = new BodyReader(endpoint.maxBodyBytes)
    const route = endpoint.path
    const hasRoom: HasRoom = (bytes, workspace) => tracker.hasRoom(bytes, workspace)

    return (request: IncomingMessage, response: TrackedResponse): void => {
      const startedAt = performance.now()
      const { method = "", url: target = "" } = request
      const headers = request.headers as Record<string, string | undefined>
      const requestId = chooseRequestId(headers["x-request-id"])
      const token = parseBearerToken(headers.authorization)
      let releaseBody: (() => void) | undefined

      const write = ({ response: content }: MountedResponse): void => {
        // If the connection stayed open, Node would parse the rest of an incomplete body as a request.
        if (!request.complete) response.shouldKeepAlive = false
        if (isStreamed(content)) {
          const canStart = tracker.canStream(response) && !response.destroyed && !request.socket.destroyed
          response.isStreamed = canStart
          tracker.recordResponse(response, { ...content, body: "" })
          if (canStart) writeStream(response, content, requestId)
          else request.socket.destroy()
        } else {
          const complete = withCommonHeaders(content, requestId)
          tracker.recordResponse(response, complete)
          enqueueResponse(response, complete)
        }
      }

      const respond = endpoint.respond({
        method,
        headers,
        token,
        requestId,
        hasRoom,
        readBody: Effect.callback((resume) => {
          releaseBody = bodies.read(request, resume)
        }),
        canStream: () => tracker.canStream(response)
      })
      const respondTraced = isTraced
        ? inSpan({ method, target, headers }, route, respond, findStatus)
        : respond
      const recorded = Effect.tap(respondTraced, ({ caller, response: { status } }) => {
        const milliseconds = performance.now() - startedAt
        return recordRequest({ method, route, status, milliseconds, requestId, caller })
      })
      fork(recorded).addObserver((exit) => {
        releaseBody?.()
        if (Exit.isSuccess(exit)) write(exit.value)
        else {
          tracker.recordResponse(response, undefined)
          request.socket.destroy()
        }
      })
    }
  })
