/**
 * Reads a prompt by a typed reference, so that the compiler knows the slots of the prompt.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-typed.ts
 */
import { fillSlots, PromptClient, type PromptReference } from "@prompt-retrieval/client"

const prompts = {
  supportAgent: { name: "support-agent", slots: ["shop"] }
} as const satisfies Readonly<Record<string, PromptReference>>

const client = new PromptClient()

const { data } = await client.prompts.getResolved(prompts.supportAgent)
const text = fillSlots(data, { shop: "Acme" }) // `{}` or `{ shpo: "Acme" }` does not compile
console.log(text.slice(0, 32))
