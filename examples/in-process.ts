/**
 * Reads prompts of the demo workspace in process, without a key. In a checkout, run `npm run build` first.
 *
 *     DATABASE_URL=postgres://… npx node examples/in-process.ts
 */
import { createPromptApi, PromptApiError } from "prompt-retrieval"

const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL ?? "" })

const caller = { workspaceId: "40de844f-2448-5881-8be9-4918059ee50c", tier: "team" }
const { data } = await api.prompts.getResolved(caller, "support-agent")
console.log(data.title, data.fragment_count)
const { meta } = await api.prompts.list(caller, { tag: "production", per_page: 100 })
console.log(meta.total)

try {
  await api.prompts.versions.get(caller, "support-agent", 99)
} catch (error) {
  if (!(error instanceof PromptApiError)) throw error
  console.log(error.code, error.message)
}

await api.close()
