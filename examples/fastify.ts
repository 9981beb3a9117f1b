/**
 * Mounts the API in a Fastify application. In a checkout, run `npm run build` first.
 *
 *     DATABASE_URL=postgres://… npx node examples/fastify.ts
 */
import fastify from "fastify"
import { createPromptApi, toNodeListener } from "prompt-retrieval"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })
const serveApi = toNodeListener(api.handler)

const application = fastify()
application.all("/api/v1/*", (request, reply) => {
  reply.hijack()
  return serveApi(request.raw, reply.raw)
})
application.get("/", () => "a page of the application\n")
application.addHook("onClose", () => api.close())
await application.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" })
console.log("listening")

process.once("SIGTERM", () => application.close())
