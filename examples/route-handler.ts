/**
 * The API as a route handler of a framework such as Next.js (`app/api/v1/[...path]/route.ts`): a function from a
 * web-standard request to its answer, and a page of the host's own that reads in process for a user who is signed in.
 */
import { createPromptApi, type PromptApi } from "../src/index.ts"

let api: Promise<PromptApi> | undefined
const promptApi = () => (api ??= createPromptApi({ databaseUrl: process.env.DATABASE_URL! }))

export const GET = async (request: Request): Promise<Response> => (await promptApi()).handler(request)
export const HEAD = GET

/** What a page shows to a member of a workspace: no key, no gate, no limit. */
export const resolvedPrompt = async (workspaceId: string, id: string): Promise<string> => {
  const { prompts } = await promptApi()
  const { data } = await prompts.getResolved({ workspaceId, tier: "team" }, id)
  return data.resolved_content
}

export const close = async (): Promise<void> => (await promptApi()).close()
