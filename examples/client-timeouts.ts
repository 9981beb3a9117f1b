/**
 * Limits the retries and the time of calls, and aborts a call.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-timeouts.ts
 */
import { PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient({
  maxRetries: 1,
  timeout: 5_000
})

const { data } = await client.prompts.getResolved("support-agent", { maxRetries: 0, timeout: 2_000 })
console.log(data.title)

const controller = new AbortController()
const call = client.prompts.getResolved("support-agent", { signal: controller.signal })
controller.abort()
await call.catch((error) => console.log(error.name))
