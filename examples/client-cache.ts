/**
 * Reads a prompt twice, as an application does before each model call. The second result comes from the client's cache.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-cache.ts
 */
import { fillSlots, PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient({
  cache: { ttl: 5_000, maxStale: 3_600_000, maxEntries: 100 }
})

for (const shop of ["Acme", "Globex"]) {
  const { data, source } = await client.prompts.getResolved("support-agent")
  const [firstLine] = fillSlots(data.resolved_content, { shop }).split("\n")
  console.log(`${data.title} (${source}): ${firstLine}`)
}
