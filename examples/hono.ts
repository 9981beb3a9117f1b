/**
 * The API mounted in a Hono application.
 *
 *     DATABASE_URL=postgres://… node examples/hono.ts
 */
import { Hono } from "hono"
import { createPromptApi } from "../src/index.ts"

export const makeApplication = async (databaseUrl: string) => {
  const api = await createPromptApi({ databaseUrl })
  const application = new Hono()
  application.get("/", (context) => context.text("a page of the application"))
  application.all("/api/v1/*", (context) => api.handler(context.req.raw))
  return { application, close: api.close }
}
