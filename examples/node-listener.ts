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

/** The listener never rejects, so no request can end the process. */
export const toNodeListener =
  (handler: WebHandler) =>
  async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const apiResponse = await handler(toWebRequest(request))
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
