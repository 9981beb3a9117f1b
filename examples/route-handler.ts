/**
 * Serves the API from a route handler of a framework such as Next.js (`app/api/v1/[...path]/route.ts`). Such a handler
 * maps a web-standard Request to a Response. The example also reads a prompt in process for a page of the application.
 */
import { createPromptApi, type PromptApi } from "prompt-retrieval"

let api: Promise<PromptApi> | undefined
const getApi = () => {
  api ??= createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" }).catch((error) => {
    api = undefined // The next request starts the API again.
    throw error
  })
  return api
}

export const GET = async (request: Request): Promise<Response> => (await getApi()).handler(request)
export const HEAD = GET

/**
 * Returns the resolved content of a prompt, for a page that a signed-in member of the workspace sees. Needs no key and
 * has no rate limit.
 */
export const getResolvedText = async (workspaceId: string, id: string): Promise<string> => {
  const { prompts } = await getApi()
  const { data } = await prompts.getResolved({ workspaceId, tier: "team" }, id)
  return data.resolved_content
}

export const close = async (): Promise<void> => (await getApi()).close()
