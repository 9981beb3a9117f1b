/**
 * Reads a prompt as an application does before each call of a model: out of the client's cache, with its slots filled.
 * Stop the service while it runs, and it goes on.
 *
 *   API_KEY=key_live_… node examples/client-cache.ts support-agent-id
 */
import { fillSlots, PromptClient } from "../client/src/index.ts"

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
