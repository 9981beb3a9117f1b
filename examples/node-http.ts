/**
 * The API mounted in a bare `node:http` server, beside the application's own routes.
 *
 *     DATABASE_URL=postgres://… node examples/node-http.ts
 */
import { createServer } from "node:http"
import { Readable } from "node:stream"
import { createPromptApi } from "../src/index.ts"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL! })

const server = createServer(async (request, response) => {
  if (!request.url?.startsWith("/api/v1/")) return response.writeHead(404).end("no such page\n")
  const headers = new Headers()
  for (let i = 0; i < request.rawHeaders.length; i += 2)
    headers.append(request.rawHeaders[i]!, request.rawHeaders[i + 1]!)
  const answer = await api.handler(
    new Request(new URL(request.url, "http://localhost"), { method: request.method!, headers })
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body === null) response.end()
  else Readable.fromWeb(answer.body as never).pipe(response)
})
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("listening"))

process.once("SIGTERM", () => server.close(() => api.close()))
