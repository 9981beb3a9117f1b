/** Converts `api.handler` to a listener of `node:http`, which Express and Fastify accept too. */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { WebHandler } from "prompt-retrieval"

const toWebRequest = ({ url, method, rawHeaders }: IncomingMessage): Request => {
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!)
  return new Request(new URL(url!, "http://localhost"), { method: method!, headers })
}

const reject = (response: ServerResponse, status: number, code: string, message: string) =>
  response
    .writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify({ error: { code, message } }))

/**
 * Serves only paths that start with `prefix`. A web-standard request has a normalized path: without this check,
 * `/api/v1/../../docs` would be served as `/docs`. The listener never rejects, so no request can end the process.
 */
export const toNodeListener =
  (handler: WebHandler, prefix = "/api/v1/") =>
  async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const apiRequest = toWebRequest(request)
      if (!new URL(apiRequest.url).pathname.startsWith(prefix)) {
        reject(response, 404, "NOT_FOUND", "Route not found")
        return
      }
      const apiResponse = await handler(apiRequest)
      response.writeHead(apiResponse.status, Object.fromEntries(apiResponse.headers))
      response.end(Buffer.from(await apiResponse.arrayBuffer()))
    } catch {
      // The handler never rejects, but `new Request` throws for some requests, for example TRACE.
      if (request.method === "GET" || request.method === "HEAD") {
        reject(response, 400, "BAD_REQUEST", "Bad request")
      } else {
        response.setHeader("allow", "GET, HEAD")
        reject(response, 405, "METHOD_NOT_ALLOWED", "Method not allowed")
      }
    }
  }
