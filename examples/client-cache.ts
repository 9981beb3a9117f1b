/**
 * Reads a resolved prompt twice, as an application does before each model call, and fills its `{{shop}}` slot. The second read
 * comes from the client's cache. Pass the id of a prompt without other slots.
 *
 *   API_KEY=key_live_… npx node examples/client-cache.ts cef02dd3-514f-5723-8852-d3305a2e66a8
 */
import { fillSlots, PromptClient } from "@prompt-retrieval/client"

const [id = ""] = process.argv.slice(2)

const client = new PromptClient({
  apiKey: process.env.API_KEY ?? "",
  baseUrl: process.env.BASE_URL,
  cache: { ttl: 5_000, maxStale: 3_600_000, maxEntries: 100 }
})

for (const shop of ["Acme", "Globex"]) {
  const { data, source } = await client.prompts.getResolved(id)
  const [firstLine] = fillSlots(data.resolved_content, { shop }).split("\n")
  console.log(`${data.title} (${source}): ${firstLine}`)
}
