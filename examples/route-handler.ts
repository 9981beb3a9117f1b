/**
 * Serves the API from a route handler of a framework such as Next.js (`app/api/v1/[...path]/route.ts`), which maps a
 * web-standard Request to a Response, and reads a prompt in process for a page of the application.
 */
import { createPromptApi, type PromptApi } from "../src/index.ts"

let api: Promise<PromptApi> | undefined
const promptApi = () => (api ??= createPromptApi({ databaseUrl: process.env.DATABASE_URL! }))

export const GET = async (request: Request): Promise<Response> => (await promptApi()).handler(request)
export const HEAD = GET

/** Returns the text that a page shows to a signed-in member of a workspace; needs no key and has no rate limit. */
export const resolvedPrompt = async (workspaceId: string, id: string): Promise<string> => {
  const { prompts } = await promptApi()
  const { data } = await prompts.getResolved({ workspaceId, tier: "team" }, id)
  return data.resolved_content
}

export const close = async (): Promise<void> => (await promptApi()).close()
