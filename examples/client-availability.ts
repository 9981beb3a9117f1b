/**
 * Loads prompts at the start of an application, and provides a fallback text for outages. The second client sends its
 * requests to a port on which no service listens.
 *
 * PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-availability.ts
 */
import { PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient({
  timeout: 5_000,
  maxRetries: 0,
  cache: {}
})

const { loaded } = await client.prefetch({ tag: "production" })
console.log(`${loaded} loaded`)

const fallback = "You are a support agent of {{shop}}."
for (const one of [client, client.withOptions({ baseUrl: "http://127.0.0.1:9" })]) {
  const { data, source, version } = await one.prompts.getResolved("support-agent", { fallback })
  console.log(`${source}, version ${version}: ${data.resolved_content.slice(0, 27)}`)
}
