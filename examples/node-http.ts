/**
 * The API mounted in a bare `node:http` server, beside the application's own routes.
 *
 *     DATABASE_URL=postgres://… node examples/node-http.ts
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createPromptApi } from "../src/index.ts"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL! })

const refuse = (response: ServerResponse, status: number, code: string, message: string) =>
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
    const answer = await api.handler(toWebRequest(request))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(Buffer.from(await answer.arrayBuffer()))
  } catch {
    // The handler never rejects, but `Request` refuses what it can't hold, such as TRACE. An uncaught error would end
    // the process.
    if (request.method === "GET" || request.method === "HEAD")
      return refuse(response, 400, "BAD_REQUEST", "Bad request")
    response.setHeader("allow", "GET, HEAD")
    refuse(response, 405, "METHOD_NOT_ALLOWED", "Method not allowed")
  }
})
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("listening"))

process.once("SIGTERM", () => server.close(() => api.close()))
