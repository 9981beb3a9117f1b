import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { type ApiError, BadRequest, MethodNotAllowed, RouteNotFound } from "../contract/Errors.ts"
import { makeApp } from "./App.ts"
import {
  type HttpResponse,
  toBytes,
  toErrorResponse,
  toHeaderPairs,
  withCommonHeaders
} from "./HttpMessage.ts"

/** A function that returns the response to a web-standard request. The promise never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

const toWebResponse = (response: HttpResponse, method: string | undefined): Response => {
  const bytes = toBytes(response.body)
  return new Response(method === "HEAD" || bytes.length === 0 ? null : bytes, {
    status: response.status,
    headers: toHeaderPairs(response)
  })
}

const toWebError = (error: ApiError, method: string | undefined): Response =>
  toWebResponse(withCommonHeaders(toErrorResponse(error), crypto.randomUUID()), method)

const readBody = () => Effect.fail(Unavailable)

/** Makes the handler of web-standard requests. The handler serves the API, but not the Model Context Protocol. */
export const makeWebHandler = Effect.gen(function* () {
  const app = yield* makeApp()
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const handler: WebHandler = async (request) => {
    const { method, url: target } = request
    const headers = Object.fromEntries(request.headers)
    const exit = await run(app({ method, target, headers, readBody }))
    // Running the app fails only if the API is closed.
    return Exit.isSuccess(exit) ? toWebResponse(exit.value, method) : toWebError(Unavailable, method)
  }
  return handler
})

/**
 * Converts a request of Node to a web-standard request. Returns undefined if the conversion is impossible, as for
 * TRACE.
 */
const toWebRequest = ({ url = "", method = "", rawHeaders }: IncomingMessage): Request | undefined => {
  try {
    const headers = new Headers()
    for (let i = 0; i < rawHeaders.length; i += 2)
      headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string)
    // Adds the origin as a text, because a URL parser reads a path that begins with `//` as a host.
    return new Request(url.startsWith("/") ? `http://localhost${url}` : url, { method, headers })
  } catch {
    return undefined
  }
}

/**
 * Converts a handler to a listener of `node:http`, which Express and Fastify accept too. The promise of the listener
 * never rejects.
 *
 * @param prefix The listener serves only paths that start with this prefix. The path of a web-standard request is
 *   normalized, so the listener checks the normalized path: `/api/v1/../../docs` is `/docs`.
 */
export const toNodeListener =
  (handler: WebHandler, prefix = "/api/v1/") =>
  async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method } = incoming
    const respond = (): Response | Promise<Response> => {
      const request = toWebRequest(incoming)
      if (request === undefined)
        return toWebError(method === "GET" || method === "HEAD" ? BadRequest : MethodNotAllowed, method)
      const { pathname } = new URL(request.url)
      return pathname.startsWith(prefix) ? handler(request) : toWebError(RouteNotFound, method)
    }
    const response = await respond()
    // The host may have responded meanwhile, for example after its own time limit.
    if (outgoing.headersSent) return
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  }
