/**
 * Serves the prompts of a workspace to LiteLLM, which reads them with its "generic prompt management". LiteLLM sends
 * the API key of the workspace. In a checkout, run `npm run build` first.
 *
 *     DATABASE_URL=postgres://… PORT=3001 npx node examples/litellm.ts
 */
import { createServer } from "node:http"
import { createPromptApi, type InProcessPrompts } from "prompt-retrieval"

type Resolved = Awaited<ReturnType<InProcessPrompts["getResolved"]>>

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })

/** Writes each slot as `{name}`, because LiteLLM would turn `{{name}}` into `{value}`. */
const toLiteLlmSlots = (text: string): string =>
  text.replace(/\{\{([^{}]{1,256})\}\}/g, (slot, name: string) => (name.trim() ? `{${name.trim()}}` : slot))

const getPrompt = async (id: string, authorization: string): Promise<Response> => {
  const url = `http://localhost/api/v1/prompts/${encodeURIComponent(id)}/resolved`
  const response = await api.handler(new Request(url, { headers: { authorization } }))
  if (!response.ok) return response
  const { data } = (await response.json()) as Resolved
  const role = ["system", "assistant"].includes(data.prompt_type) ? data.prompt_type : "user"
  return Response.json({
    prompt_id: id,
    prompt_template: [{ role, content: toLiteLlmSlots(data.resolved_content) }],
    prompt_template_model: data.target_model
  })
}

const server = createServer(async ({ method, url, headers }, response) => {
  const target = URL.parse(url ?? "", "http://localhost")
  const isPrompt = method === "GET" && target?.pathname === "/beta/litellm_prompt_management"
  const result = isPrompt
    ? await getPrompt(target.searchParams.get("prompt_id") ?? "", headers.authorization ?? "")
    : new Response("no such page\n", { status: 404 })
  response.writeHead(result.status, Object.fromEntries(result.headers)).end(await result.text())
})
server.listen(Number(process.env.PORT ?? 3001), "127.0.0.1", () => console.log("listening"))

process.once("SIGTERM", () => server.close(() => api.close()))
