/**
 * Mounts the API in a plain `node:http` server, next to the application's own routes.
 *
 *     DATABASE_URL=postgres://… node examples/node-http.ts
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createPromptApi } from "../src/index.ts"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL! })

const reject = (response: ServerResponse, status: number, code: string, message: string) =>
  response
    .writeHead(status, { "content-type": "application/json", "cache-control": "no-store" })
    .end(JSON.stringify({ error: { code, message } }))

const toWebRequest = ({ url, method, rawHeaders }: IncomingMessage): Request => {
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!)
  return new Request(new URL(url!, "http://localhost"), { method: method!, headers })
}

const server = createServer(async (request, response) => {
  if (!request.url?.startsWith("/api/v1/")) return response.writeHead(404).end("no such page\n")
  try {
    const apiResponse = await api.handler(toWebRequest(request))
    response.writeHead(apiResponse.status, Object.fromEntries(apiResponse.headers))
    response.end(Buffer.from(await apiResponse.arrayBuffer()))
  } catch {
    // The handler never rejects, but `new Request` throws for some requests, for example TRACE. An uncaught error would end
    // the process.
    if (request.method === "GET" || request.method === "HEAD")
      return reject(response, 400, "BAD_REQUEST", "Bad request")
    response.setHeader("allow", "GET, HEAD")
    reject(response, 405, "METHOD_NOT_ALLOWED", "Method not allowed")
  }
})
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("listening"))

process.once("SIGTERM", () => server.close(() => api.close()))
