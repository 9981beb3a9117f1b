/**
 * Mounts the API in an Express application. In a checkout, run `npm run build` first.
 *
 *     DATABASE_URL=postgres://… npx node examples/express.ts
 */
import express from "express"
import { createPromptApi, toNodeListener } from "prompt-retrieval"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })
const serveApi = toNodeListener(api.handler)

const application = express()
application.use((request, response, next) =>
  request.url.startsWith("/api/v1/") ? serveApi(request, response) : next()
)
application.get("/", (_request, response) => {
  response.send("a page of the application\n")
})
const server = application.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", (error) => {
  if (error !== undefined) throw error
  console.log("listening")
})

process.once("SIGTERM", () => server.close(() => api.close()))
