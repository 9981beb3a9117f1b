/**
 * Mounts the API in a Hono application. On Node, `serve` of `@hono/node-server` serves `application.fetch`; Bun and
 * Deno serve the default export.
 */
import { Hono } from "hono"
import { createPromptApi } from "prompt-retrieval"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })

const application = new Hono()
application.all("/api/v1/*", (context) => api.handler(context.req.raw))
application.get("/", (context) => context.text("a page of the application\n"))

export default application

/** Call this function after the server has stopped. */
export const close = (): Promise<void> => api.close()
