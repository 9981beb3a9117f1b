/**
 * Reads one page of a list, then all items of two lists.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-pagination.ts
 */
import { PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient()

const { data, meta } = await client.prompts.list({ page: 1, per_page: 2, tag: "production" })
console.log(`${data.length} of ${meta.total} prompts`)

for await (const prompt of client.prompts.list({ type: "system", per_page: 100 })) {
  console.log(prompt.title)
}
for await (const version of client.prompts.versions.list("support-agent")) {
  console.log(version.version_number, version.change_summary)
}
