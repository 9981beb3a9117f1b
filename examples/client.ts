/**
 * Reads a prompt with its fragments appended, and fills its `{{shop}}` slot.
 *
 *     API_KEY=key_live_… npx node examples/client.ts
 */
import { fillSlots, PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient({
  apiKey: process.env.API_KEY ?? "",
  baseUrl: process.env.BASE_URL // the default is http://127.0.0.1:3000
})

const { data } = await client.prompts.getResolved("cef02dd3-514f-5723-8852-d3305a2e66a8")
console.log(fillSlots(data.resolved_content, { shop: "Acme" }))
