/**
 * Reads a prompt with its fragments appended, and fills its `{{shop}}` slot.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client.ts
 */
import { fillSlots, PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient({ cache: {} }) // reads PROMPT_RETRIEVAL_KEY and PROMPT_RETRIEVAL_URL

const { data } = await client.prompts.getResolved("support-agent")
console.log(fillSlots(data.resolved_content, { shop: "Acme" }))
