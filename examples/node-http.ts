/**
 * Mounts the API in a plain `node:http` server, next to the application's pages. In a checkout, run `npm run build`
 * first.
 *
 *     DATABASE_URL=postgres://… npx node examples/node-http.ts
 */
import { createServer } from "node:http"
import { createPromptApi, toNodeListener } from "prompt-retrieval"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })
const serveApi = toNodeListener(api.handler)

const server = createServer((request, response) => {
  if (request.url?.startsWith("/api/v1/")) return serveApi(request, response)
  if (request.url === "/") return response.end("a page of the application\n")
  return response.writeHead(404).end("no such page\n")
})
server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("listening"))

process.once("SIGTERM", () => server.close(() => api.close()))
